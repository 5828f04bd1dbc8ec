import type { IncomingMessage } from 'node:http';
import { type CidrBlock, type IpAddress, isInBlock, parseAddress } from '../../domain/ip-address.ts';

/** The address that a request comes from; null if it can't be told. */
export type ReadClientAddress = (req: IncomingMessage) => string | null;

/**
 * Tells who sent a request (docs/operating.md, "Client addresses"): the connection's address; if that is a
 * trusted proxy, the rightmost address of X-Forwarded-For that isn't one. If all are, it is the leftmost. An
 * IPv4-mapped IPv6 address counts as its IPv4 address.
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

  function isTrusted(address: IpAddress): boolean {
    return trustedProxies.some((block) => isInBlock(address, block));
  }
}
