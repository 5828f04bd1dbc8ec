import type { TlsOptions } from 'node:tls';
import { createAuthority } from './certificates.ts';
import { HOST, leadTo, PUBLIC, withClient } from './clients.ts';
import { answering, type Receiver, startReceiver } from './receivers.ts';

/** An authority that the client trusts, one that it does not, and a certificate for HOST that is as it should be. */
export function createTrust() {
  const authority = createAuthority('Trusted');
  return { authority, stranger: createAuthority('Stranger'), good: authority.issue({ hosts: [HOST] }) };
}

export type Trust = ReturnType<typeof createTrust>;

/** Posts to https://HOST, which leads to this receiver. @returns outcome and error of each attempt */
export async function postOverTls(
  { authority }: Trust,
  starting: Promise<Receiver>,
  { times = 1, url = `https://${HOST}/` } = {},
) {
  const receiver = await starting;
  try {
    const options = { ca: authority.ca, resolve: async () => [PUBLIC], openSocket: leadTo(receiver.port) };
    return await withClient({ ...options, timeoutMs: 5_000 }, async (post) => {
      const results = [];
      for (let i = 0; i < times; i++) results.push(await post(url));
      return results.map((result) => [result.outcome, result.error]);
    });
  } finally {
    await receiver.close();
  }
}

export const serving = (tls: TlsOptions) => startReceiver(answering(200), tls);
