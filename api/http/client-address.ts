import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import type { CidrBlock } from '../../config/service.ts';

/** The address that a request comes from; null if it can't be told. */
export type ReadClientAddress = (req: IncomingMessage) => string | null;

/**
 * Tells who sent a request (docs/operating.md, "Client addresses"): the connection's address; if that is a trusted proxy, the
 * rightmost address of X-Forwarded-For that isn't one. If all are, it is the leftmost. An IPv4-mapped IPv6 address counts as
 * its IPv4 address.
 */
export function createReadClientAddress(trustedProxies: readonly CidrBlock[]): ReadClientAddress {
  return (req) => {
    let address = parseAddress(req.socket.remoteAddress ?? '');
    const forwarded = req.headers['x-forwarded-for'];
    if (forwarded === undefined || trustedProxies.length === 0) return address?.toString() ?? null;
    const hops = [forwarded].flat().join(',').split(',');
    for (const hop of hops.reverse()) {
      if (address === null || !isTrusted(address)) break;
      address = parseAddress(hop.trim());
    }
    return address?.toString() ?? null;
  };

  function isTrusted(address: Address): boolean {
    return trustedProxies.some(
      ([block, bits]) => block.kind() === address.kind() && address.match(block, bits),
    );
  }
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Only the usual spellings: 010.0.0.1 and 127.1 mean different addresses to different programs. */
function parseAddress(text: string): Address | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  if (!ipaddr.IPv6.isValid(text)) return null;
  const address = ipaddr.IPv6.parse(text);
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}
