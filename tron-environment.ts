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

/** What deposits are configured by. */
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

export interface TronConfig {
  network: 'mainnet' | 'nile' | 'shasta' | 'private';
  /** In the order they are asked: what a full node serves, and what it serves of solid blocks. */
  nodes: { full: string; solidity: string }[];
  apiKey: string | null;
  /** Whose tokens count. */
  usdtContract: string;
  /** The account's extended public key, m/44'/195'/0'. */
  xpub: string;
  scanIntervalMs: number;
}

interface TronValues {
  TRON_NETWORK?: TronConfig['network'] | undefined;
  TRON_NODE_URLS?: string | undefined;
  TRON_API_KEY?: string | undefined;
  TRON_USDT_CONTRACT?: string | undefined;
  TRON_XPUB?: string | undefined;
  TRON_SCAN_INTERVAL: number;
}

/** Public nodes and the contract of each network (design/deposits.md); a private one has none that is known. */
const KNOWN_NETWORKS: Partial<Record<TronConfig['network'], { node: string; usdtContract?: string }>> = {
  mainnet: { node: 'https://api.trongrid.io', usdtContract: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' },
  nile: { node: 'https://nile.trongrid.io', usdtContract: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' },
  shasta: { node: 'https://api.shasta.trongrid.io' },
};

/** @returns null where there are no deposits. {@link tronProblems} has said what is missing. */
export function tronConfig(values: TronValues): TronConfig | null {
  const { TRON_NETWORK: network, TRON_XPUB: xpub } = values;
  if (network === undefined || xpub === undefined) return null;
  const known = KNOWN_NETWORKS[network];
  const urls = values.TRON_NODE_URLS ?? known?.node ?? '';
  return {
    network,
    nodes: urls.split(',').map((node) => {
      const [full = '', solidity = full] = node.trim().split('|');
      return { full, solidity };
    }),
    apiKey: values.TRON_API_KEY ?? null,
    usdtContract: values.TRON_USDT_CONTRACT ?? known?.usdtContract ?? '',
    xpub,
    scanIntervalMs: values.TRON_SCAN_INTERVAL,
  };
}

/** What is missing beside what is set. */
export function tronProblems(set: NodeJS.ProcessEnv): string[] {
  return [
    ...(set.TRON_NETWORK && !set.TRON_XPUB ? ['TRON_XPUB: is required with TRON_NETWORK'] : []),
    ...(['shasta', 'private'].includes(set.TRON_NETWORK ?? '') && !set.TRON_USDT_CONTRACT
      ? [`TRON_USDT_CONTRACT: is required with TRON_NETWORK=${set.TRON_NETWORK}`]
      : []),
    ...(set.TRON_NETWORK === 'private' && !set.TRON_NODE_URLS
      ? ['TRON_NODE_URLS: is required with TRON_NETWORK=private']
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
