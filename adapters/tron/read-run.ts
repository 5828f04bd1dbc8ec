import { NodeProblem } from './node-health.ts';
import type { BlockRef, SolidBlock } from './tron-chain.ts';

interface Run {
  /** In order, each the child of the one before it. */
  blocks: SolidBlock[];
  /** Why it ended before its last block; null if it did not, or if the node merely does not have the next one. */
  problem: NodeProblem | null;
}

/**
 * Reads the blocks after `after` up to number `last`, several at a time.
 * @param read null of a block that isn't there, or not whole
 * @param atOnce how many blocks are in memory, whole, at a time
 * @param runMs when it begins no more blocks; it always reads one
 */
export async function readRun(
  read: (number: number, signal: AbortSignal) => Promise<SolidBlock | null>,
  after: BlockRef,
  { last, atOnce, runMs }: { last: number; atOnce: number; runMs: number },
  signal: AbortSignal,
): Promise<Run> {
  const endAtMs = performance.now() + runMs;
  const ended = new AbortController();
  const ownSignal = AbortSignal.any([signal, ended.signal]);
  const begun: Promise<Outcome>[] = [];
  const blocks: SolidBlock[] = [];
  let next = after.number + 1;
  let parentHash = after.hash;
  try {
    for (;;) {
      while (
        begun.length < atOnce &&
        next <= last &&
        (next === after.number + 1 || performance.now() < endAtMs)
      )
        begun.push(outcomeOf(read(next++, ownSignal)));
      const outcome = await begun.shift();
      signal.throwIfAborted();
      if (outcome === undefined) return { blocks, problem: null };
      if (outcome.problem !== null || outcome.block === null) return { blocks, problem: outcome.problem };
      const { block } = outcome;
      if (parentHash !== null && block.parentHash !== parentHash) {
        // Of what this node has said itself, the next run's first block will tell.
        const problem = blocks.length > 0 ? null : new NodeProblem('contradicting', 'other_chain');
        return { blocks, problem };
      }
      blocks.push(block);
      parentHash = block.hash;
    }
  } finally {
    ended.abort();
  }
}

type Outcome = { block: SolidBlock | null; problem: NodeProblem | null };

/** Settled in any case, since it may not be awaited. @throws what is no node's fault, when it is */
function outcomeOf(reading: Promise<SolidBlock | null>): Promise<Outcome> {
  const outcome = reading.then(
    (block) => ({ block, problem: null }),
    (error) => {
      if (error instanceof NodeProblem) return { block: null, problem: error };
      throw error;
    },
  );
  outcome.catch(() => {});
  return outcome;
}
