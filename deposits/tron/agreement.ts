import type { BlockRef, SolidBlock, UsdtTransfer } from './tron-chain.ts';
import type { TronNode } from './tron-node.ts';

/** What a node says about the block after that one. */
export function describeWitness(node: TronNode, after: BlockRef): string {
  const [first] = node.remembered(after) ?? [];
  const problem = node.health.problem?.code ?? null;
  if (first === undefined) return problem ?? `nothing after block ${node.newest?.number ?? after.number}`;
  return `block ${first.number} is ${first.hash}${problem === null ? '' : ` (${problem})`}`;
}

/** What a node has after the last block taken. */
export interface Run {
  node: TronNode;
  blocks: SolidBlock[];
  /** Whether the last block taken is its newest. */
  isLevel: boolean;
}

/**
 * The first blocks that at least `needed` of the runs have in common, unless as many have others in common.
 */
export function agreedOn(
  runs: readonly Run[],
  needed: number,
): { blocks: SolidBlock[]; shownBy: TronNode[] } {
  const blocks: SolidBlock[] = [];
  let sharing = runs;
  for (;;) {
    const longer = sharing.filter((run) => run.blocks.length > blocks.length);
    const byHash = Map.groupBy(longer, (run) => run.blocks[blocks.length]?.hash);
    const [enough, ...more] = [...byHash.values()].filter((group) => group.length >= needed);
    if (enough === undefined || more.length > 0) return { blocks, shownBy: sharing.map(({ node }) => node) };
    blocks.push(merged(enough.flatMap((run) => run.blocks[blocks.length] ?? [])));
    sharing = enough;
  }
}

/** The same block as several nodes show it, with the transfers that any of them shows. */
function merged(copies: readonly SolidBlock[]): SolidBlock {
  const [block, ...others] = copies as [SolidBlock, ...SolidBlock[]];
  if (others.length === 0) return block;
  const transfers = new Map<string, UsdtTransfer>();
  for (const transfer of copies.flatMap((copy) => copy.transfers)) {
    const { txHash, logIndex, toHash, valueMicroUsdt, shownBy } = transfer;
    const key = `${txHash}/${logIndex}/${toHash}/${valueMicroUsdt}`;
    const known = transfers.get(key);
    transfers.set(key, { ...transfer, shownBy: [...(known?.shownBy ?? []), ...shownBy] });
  }
  return { ...block, transfers: [...transfers.values()] };
}

/** The hashes of the next block that these runs begin with. */
export function nextHashes(runs: readonly Run[]): Set<string> {
  return new Set(runs.flatMap(({ blocks }) => blocks[0]?.hash ?? []));
}

/**
 * Why runs that don't agree on a next block have none to take: `level` if nobody has a newer block;
 * `waiting` if some of enough nodes don't have it yet; `contradicted` if they have different ones;
 * `unreadable` if too few nodes responded.
 */
export function whatIsMissing(
  runs: readonly Run[],
  needed: number,
): 'level' | 'waiting' | 'contradicted' | 'unreadable' {
  const hashes = nextHashes(runs);
  if (hashes.size > 1) return 'contradicted';
  if (runs.length === 0) return 'unreadable';
  if (hashes.size === 0) return 'level';
  return runs.length < needed ? 'unreadable' : 'waiting';
}
