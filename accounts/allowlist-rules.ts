import { ApiError } from '../domain/api-error.ts';
import { type CidrBlock, isInBlock, parseAddress } from '../domain/ip-address.ts';

/** The trusted proxies are ours, so this is our mistake and not the partner's. */
const UNREADABLE_ADDRESS =
  "X-Forwarded-For doesn't end in your IP address, so we can't tell where the request comes from: it was not started. Contact us";

/**
 * @param ipAllowlist of the API key; null: every address
 * @param clientAddress null if it can't be told
 * @throws ApiError `ip_not_allowed`
 */
export function checkAddress(ipAllowlist: readonly CidrBlock[] | null, clientAddress: string | null): string {
  if (clientAddress === null) throw new ApiError('ip_not_allowed', { message: UNREADABLE_ADDRESS });
  if (ipAllowlist === null) return clientAddress;
  const address = parseAddress(clientAddress);
  if (address !== null && ipAllowlist.some((block) => isInBlock(address, block))) return clientAddress;
  throw new ApiError('ip_not_allowed', {
    message:
      `This request comes from ${clientAddress}, where its API key can't be used: the address is not in the key's ` +
      'ip_allowlist. The request did nothing.',
  });
}
