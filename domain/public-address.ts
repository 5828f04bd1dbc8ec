import ipaddr from 'ipaddr.js';

/**
 * In no registry of special ranges, but not the public internet either: Azure's services for virtual
 * machines.
 */
const CLOUD_SERVICES: readonly string[] = ['168.63.129.16'];

/** All that IPv6 has assigned to the public internet so far. `::/96` and other special ranges lie outside. */
const PUBLIC_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Whether a machine on the public internet can have this address (docs/decisions/outbound-safety.md). An
 * address in an unusual spelling (leading zeros, short forms, zones) does not count as public.
 * @param address IPv4 in four decimal parts, or IPv6 without brackets
 */
export function isPublicAddress(address: string): boolean {
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) {
    return ipaddr.IPv4.parse(address).range() === 'unicast' && !CLOUD_SERVICES.includes(address);
  }
  if (!ipaddr.IPv6.isValid(address)) return false;
  const parsed = ipaddr.IPv6.parse(address);
  return parsed.zoneId === undefined && parsed.range() === 'unicast' && parsed.match(PUBLIC_IPV6);
}

/** Whether this is 127.0.0.0/8 or ::1 in its usual spelling. */
export function isLoopbackAddress(address: string): boolean {
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return ipaddr.IPv4.parse(address).range() === 'loopback';
  return address === '::1';
}

/** Whether a URL's host, without brackets, is an address rather than a name. */
export function isAddress(host: string): boolean {
  return ipaddr.isValid(host);
}
