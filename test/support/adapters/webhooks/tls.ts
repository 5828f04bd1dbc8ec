import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { TlsOptions } from 'node:tls';
import forge from 'node-forge';
import { HOST, leadTo, PUBLIC, withClient } from './clients.ts';
import { answering, type Receiver, startReceiver } from './receivers.ts';

const DAY_MS = 86_400_000;

export function createAuthority(name: string) {
  const own = generateKeys();
  // One pair for all it certifies: making keys takes time, and no test is about them.
  const subjects = generateKeys();
  const certificate = (subject: string, publicKey: string, fromDays: number, toDays: number) => {
    const made = forge.pki.createCertificate();
    made.publicKey = forge.pki.publicKeyFromPem(publicKey);
    made.serialNumber = `01${randomBytes(8).toString('hex')}`;
    made.validity.notBefore = new Date(Date.now() + fromDays * DAY_MS);
    made.validity.notAfter = new Date(Date.now() + toDays * DAY_MS);
    made.setSubject([{ name: 'commonName', value: subject }]);
    made.setIssuer([{ name: 'commonName', value: name }]);
    return made;
  };
  const signed = (made: forge.pki.Certificate, extension: object) => {
    made.setExtensions([extension]);
    made.sign(forge.pki.privateKeyFromPem(own.key), forge.md.sha256.create());
    return forge.pki.certificateToPem(made);
  };
  return {
    key: own.key,
    ca: signed(certificate(name, own.publicKey, -30, 30), { name: 'basicConstraints', cA: true }),
    /** A certificate for these names and addresses, which holds from one day to the other, counted from today. */
    issue: ({
      hosts,
      fromDays = -1,
      toDays = 1,
    }: {
      hosts: string[];
      fromDays?: number;
      toDays?: number;
    }) => {
      const altNames = hosts.map((host) =>
        /^[\d.]+$/.test(host) ? { type: 7, ip: host } : { type: 2, value: host },
      );
      const made = certificate(hosts[0] ?? '', subjects.publicKey, fromDays, toDays);
      return { cert: signed(made, { name: 'subjectAltName', altNames }), key: subjects.key };
    },
  };
}

function generateKeys() {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  });
  return { publicKey, key: privateKey };
}

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
