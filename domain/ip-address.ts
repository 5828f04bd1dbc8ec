import ipaddr from 'ipaddr.js';
import { z } from 'zod';

export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;

/** An address and how many of its first bits count. */
export type CidrBlock = readonly [IpAddress, number];

/**
 * Only the usual spellings: 010.0.0.1 and 127.1 mean different addresses to different programs. An
 * IPv4-mapped IPv6 address is that IPv4 address.
 * @returns null if it is no address
 */
export function parseAddress(text: string): IpAddress | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  if (!ipaddr.IPv6.isValid(text)) return null;
  const address = ipaddr.IPv6.parse(text);
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** A CIDR block, or an address, which is the block of itself; null if the text is neither. */
export function parseBlock(text: string): CidrBlock | null {
  const [, base = '', bits] = /^([^/]*)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? [];
  const address = parseAddress(base);
  if (address === null || (address instanceof ipaddr.IPv6 && address.zoneId !== undefined)) return null;
  const length = 8 * address.toByteArray().length;
  // A mapped address has 96 bits in front of those of the IPv4 address.
  const counted = bits === undefined ? length : Number(bits) - (base.includes(':') ? 128 - length : 0);
  return counted >= 0 && counted <= length ? [address, counted] : null;
}

/** The one spelling of a block: its first address, and its length unless it is a single address. */
export function spellBlock([address, bits]: CidrBlock): string {
  const bytes = address.toByteArray().map((byte, index) => {
    const free = Math.min(8, Math.max(0, 8 * (index + 1) - bits));
    return (byte >> free) << free;
  });
  const first = ipaddr.fromByteArray(bytes).toString();
  return bits === 8 * bytes.length ? first : `${first}/${bits}`;
}

/**
 * What counts as one address for a limit: an IPv6 network of 64 bits, as its owner has all of its addresses.
 * @param text null, or no address: all of them together
 */
export function limitedAddress(text: string | null): string {
  const address = parseAddress(text ?? '');
  if (address === null) return 'none';
  return spellBlock([address, address.kind() === 'ipv6' ? 64 : 32]);
}

/** Those of the texts that {@link parseBlock} understands. */
export const parseBlocks = (texts: readonly string[]): CidrBlock[] =>
  texts.map(parseBlock).filter((block) => block !== null);

export const isInBlock = (address: IpAddress, [block, bits]: CidrBlock): boolean =>
  block.kind() === address.kind() && address.match(block, bits);

/**
 * Those blocks, as {@link spellBlock} spells them, that have an address outside of `allowed`. Null is every
 * address.
 */
export function blocksOutside(blocks: readonly string[] | null, allowed: readonly string[] | null): string[] {
  if (allowed === null) return [];
  const within = parseBlocks(allowed);
  return (blocks ?? ['0.0.0.0/0', '::/0']).filter((text) => {
    const block = parseBlock(text);
    return block === null || !within.some((outer) => block[1] >= outer[1] && isInBlock(block[0], outer));
  });
}

/**
 * Every usual spelling, for the reference. What it leaves out, such as ::ffff:192.0.2.1, is accepted, too.
 */
const SPELLINGS = (() => {
  const four = z.regexes.ipv4.source.slice(1, -1);
  const six = z.regexes.ipv6.source.slice(1, -1);
  return `^(?:${four}(?:/(?:[12]?[0-9]|3[0-2]))?|${six}(?:/(?:[1-9]?[0-9]|1[01][0-9]|12[0-8]))?)$`;
})();

const MAX_BLOCKS = 50;
const NOT_A_BLOCK =
  'must be an IP address or a CIDR block, such as 203.0.113.7, 198.51.100.0/24 or 2001:db8::/32';

/** From where an API key may be used: addresses and CIDR blocks, each once, in their one spelling. */
export const IpAllowlist = z
  .array(
    z
      .string({ error: 'must be a string' })
      .max(50, NOT_A_BLOCK)
      .refine((text) => parseBlock(text) !== null, NOT_A_BLOCK)
      .meta({ pattern: SPELLINGS, maxLength: undefined }),
  )
  .min(1, 'must not be empty: null means every address')
  .max(MAX_BLOCKS, `must have at most ${MAX_BLOCKS} addresses or blocks`)
  .transform((texts) => [...new Set(parseBlocks(texts).map(spellBlock))]);
