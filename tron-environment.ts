import { createHash } from 'node:crypto';
import { z } from 'zod';

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const CHECKSUM_BYTES = 4;
/** BIP-32: version, depth, fingerprint, child number, chain code, public key. */
const XPUB = { prefix: Buffer.from('0488b21e', 'hex'), bytes: 78 };
const ADDRESS = { prefix: Buffer.of(0x41), bytes: 21 };

const NodeUrls = z.string().refine((text) => {
  const nodes = text.split(',').map((node) => node.trim().split('|'));
  return nodes.every((urls) => urls.length <= 2 && urls.every(isHttpUrl));
}, 'must be http(s) URLs, comma-separated; a bare node as http://host:8090|http://host:8091');

const Xpub = z.string().transform((text, ctx) => {
  if (/^[a-z]prv/i.test(text)) {
    ctx.addIssue('is a private key (xprv): the service must never have one; take the account xpub');
  } else if (!isBase58Check(text, XPUB)) {
    ctx.addIssue('must be an account xpub: xpub… with 111 characters, and its checksum right');
  }
  return text;
});

/** What deposits are configured by; checked, and of no use until there are deposits. */
export const TRON_VARIABLES = {
  TRON_NETWORK: z
    .enum(['mainnet', 'nile', 'shasta', 'private'], 'must be mainnet, nile, shasta or private')
    .optional(),
  TRON_NODE_URLS: NodeUrls.optional(),
  TRON_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')
    .optional(),
  TRON_USDT_CONTRACT: z
    .string()
    .refine(
      (text) => isBase58Check(text, ADDRESS),
      'must be a TRON address: T… with 34 characters, and its checksum right',
    )
    .optional(),
  TRON_XPUB: Xpub.optional(),
};

/** What is missing beside what is set. */
export function tronProblems(set: NodeJS.ProcessEnv): string[] {
  return [
    ...(set.TRON_NETWORK && !set.TRON_XPUB ? ['TRON_XPUB: is required with TRON_NETWORK'] : []),
    ...(set.TRON_NETWORK === 'private' && !set.TRON_USDT_CONTRACT
      ? ['TRON_USDT_CONTRACT: is required with TRON_NETWORK=private']
      : []),
  ];
}

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return ['http:', 'https:'].includes(protocol) && username === '' && password === '';
}

/** Whether it is these bytes, beginning with that prefix, and the first 4 of their SHA-256 of SHA-256, in base58. */
function isBase58Check(text: string, { prefix, bytes }: { prefix: Buffer; bytes: number }): boolean {
  const length = bytes + CHECKSUM_BYTES;
  // Neither prefix begins with a zero, so there is no leading 1 to count.
  if (!/^[1-9A-HJ-NP-Za-km-z]{25,120}$/.test(text)) return false;
  const number = [...text].reduce((sum, digit) => sum * 58n + BigInt(BASE58.indexOf(digit)), 0n);
  const hex = number.toString(16);
  const all = Buffer.from(hex.padStart(length * 2, '0'), 'hex');
  if (all.length !== length || !all.subarray(0, prefix.length).equals(prefix)) return false;
  const sha256 = (data: Buffer) => createHash('sha256').update(data).digest();
  const checksum = sha256(sha256(all.subarray(0, bytes))).subarray(0, CHECKSUM_BYTES);
  return checksum.equals(all.subarray(bytes));
}
