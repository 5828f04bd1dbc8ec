import { z } from 'zod';
import { ChainName } from '../../domain/deposit.ts';
import { tronAddressHash, xpubProblem } from '../crypto/tron-address.ts';
import { isHttpUrl, PrintableKey } from './values.ts';

const NodeUrls = z
  .string()
  .refine(
    (text) => splitPairs(text).every((urls) => urls.length <= 2 && urls.every(isHttpUrl)),
    'must be http(s) URLs, comma-separated; a bare node as http://host:8090|http://host:8091',
  )
  .refine((text) => {
    const urls = splitPairs(text).map(([full = '']) => (URL.canParse(full) ? new URL(full).href : full));
    return new Set(urls).size === urls.length;
  }, 'must not contain a node twice: the nodes are checked against each other');

const Xpub = z.string().superRefine((text, ctx) => {
  const problem = xpubProblem(text);
  if (problem !== null) ctx.addIssue(problem);
});

/** The variables of deposits. */
export const TRON_VARIABLES = {
  TRON_NETWORK: z.enum(ChainName.options, 'must be mainnet, nile, shasta or private').optional(),
  TRON_NODE_URLS: NodeUrls.optional(),
  TRON_CONFIRMING_NODES: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, 'must be a whole number from 1')
    .optional(),
  TRON_API_KEY: PrintableKey.optional(),
  TRON_USDT_CONTRACT: z
    .string()
    .refine(
      (text) => tronAddressHash(text) !== null,
      'must be a TRON address: 34 characters that start with T, with a valid checksum',
    )
    .optional(),
  TRON_XPUB: Xpub.optional(),
};

export type TronConfig = NonNullable<ReturnType<typeof tronConfig>>;

type TronValues = z.infer<z.ZodObject<typeof TRON_VARIABLES>> & { TRON_SCAN_INTERVAL: number };

/**
 * The public nodes and the USDT contract of each network (TRON_NODE_URLS and TRON_USDT_CONTRACT in
 * docs/operating.md).
 */
const KNOWN_CHAINS: Partial<Record<ChainName, { node: string; usdtContract?: string }>> = {
  mainnet: { node: 'https://api.trongrid.io', usdtContract: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' },
  nile: { node: 'https://nile.trongrid.io', usdtContract: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' },
  shasta: { node: 'https://api.shasta.trongrid.io' },
};

/** @returns null if deposits are not configured; {@link tronProblems} finds what is missing. */
export function tronConfig(values: TronValues) {
  const { TRON_NETWORK: network } = values;
  if (network === undefined) return null;
  const known = KNOWN_CHAINS[network];
  const urls = splitPairs(values.TRON_NODE_URLS ?? known?.node ?? '');
  return {
    network,
    /** In order of preference: each node's URL for any block, and its URL for solid blocks. */
    nodes: urls.map(([full = '', solidity = full]) => ({ full, solidity })),
    /** How many of them have to show a payment before it is credited. */
    confirmingNodes: Number(values.TRON_CONFIRMING_NODES ?? Math.min(2, urls.length)),
    apiKey: values.TRON_API_KEY ?? null,
    /** Only this contract's tokens are credited. */
    usdtContract: values.TRON_USDT_CONTRACT ?? known?.usdtContract ?? '',
    /** The account's extended public key, m/44'/195'/0'; null in a process that gives out no addresses. */
    xpub: values.TRON_XPUB ?? null,
    scanIntervalMs: values.TRON_SCAN_INTERVAL,
  };
}

const splitPairs = (urls: string): string[][] => urls.split(',').map((node) => node.trim().split('|'));

/**
 * Finds variables that are missing, or that do not fit the network.
 * @param schema of the variables that the process reads: the API gives out addresses, the worker asks the
 * nodes
 */
export function tronProblems(set: NodeJS.ProcessEnv, schema: object): string[] {
  const [needsXpub, needsNodes] = ['TRON_XPUB' in schema, 'TRON_NODE_URLS' in schema];
  const { TRON_NETWORK: network } = set;
  const problems: string[] = [];
  if (network && needsXpub && !set.TRON_XPUB) problems.push('TRON_XPUB: is required with TRON_NETWORK');
  if (['shasta', 'private'].includes(network ?? '') && !set.TRON_USDT_CONTRACT)
    problems.push(`TRON_USDT_CONTRACT: is required with TRON_NETWORK=${network}`);
  if (network === 'private' && needsNodes && !set.TRON_NODE_URLS)
    problems.push('TRON_NODE_URLS: is required with TRON_NETWORK=private');
  if (needsNodes) problems.push(...confirmingProblems(set));
  problems.push(...foreignProblems(set));
  return problems;
}

function confirmingProblems({
  TRON_CONFIRMING_NODES: needed,
  TRON_NODE_URLS: urls,
}: NodeJS.ProcessEnv): string[] {
  const count = urls ? splitPairs(urls).length : 1;
  // Text that is no number is another problem.
  const hasTooFew = Number(needed ?? 0) > count;
  const nodes = count === 1 ? 'one node' : `${count} nodes`;
  return hasTooFew ? [`TRON_CONFIRMING_NODES: is ${needed}, but TRON_NODE_URLS has ${nodes}`] : [];
}

/** Finds the contract or a node of another chain. */
function foreignProblems({ TRON_NETWORK: network, ...set }: NodeJS.ProcessEnv): string[] {
  if (network === undefined || network === 'private') return [];
  const { TRON_USDT_CONTRACT: contract, TRON_NODE_URLS: urls = '' } = set;
  const others = Object.entries(KNOWN_CHAINS).filter(([name]) => name !== network);
  const contractChain = contract && others.find(([, known]) => known.usdtContract === contract)?.[0];
  const nodeChain = others.find(([, known]) => urls.includes(new URL(known.node).host))?.[0];
  const problems: string[] = [];
  if (network === 'mainnet' && contract && contract !== KNOWN_CHAINS.mainnet?.usdtContract)
    problems.push(
      'TRON_USDT_CONTRACT: is not the USDT contract on mainnet; leave it out to use the right one',
    );
  else if (contractChain)
    problems.push(`TRON_USDT_CONTRACT: belongs to ${contractChain}, but TRON_NETWORK is ${network}`);
  if (nodeChain)
    problems.push(`TRON_NODE_URLS: contains a node of ${nodeChain}, but TRON_NETWORK is ${network}`);
  return problems;
}
