import { NodeProblem } from './node-health.ts';
import type { BlockRef, SolidBlock } from './tron-chain.ts';

interface Run {
  /** In order, each the child of the one before it. */
  blocks: SolidBlock[];
  /** Why the run ended early; null if it didn't, or if the node just doesn't have the next block yet. */
  problem: NodeProblem | null;
}

/**
 * Reads the blocks after `after` up to number `last`, several at a time.
 * @param read returns null for a block that is missing or incomplete
 * @param atOnce how many whole blocks may be in memory at once
 * @param runMs after this time, no further block is started; at least one is always read
 */
export async function readRun(
  read: (number: number, signal: AbortSignal) => Promise<SolidBlock | null>,
  after: BlockRef,
  { last, atOnce, runMs, nowMs }: { last: number; atOnce: number; runMs: number; nowMs: () => number },
  signal: AbortSignal,
): Promise<Run> {
  const endAtMs = nowMs() + runMs;
  const ended = new AbortController();
  const ownSignal = AbortSignal.any([signal, ended.signal]);
  const begun: Promise<Outcome>[] = [];
  const blocks: SolidBlock[] = [];
  let next = after.number + 1;
  let parentHash = after.hash;
  try {
    for (;;) {
      while (begun.length < atOnce && next <= last && (next === after.number + 1 || nowMs() < endAtMs))
        begun.push(awaitOutcome(read(next++, ownSignal)));
      const outcome = await begun.shift();
      signal.throwIfAborted();
      if (outcome === undefined) return { blocks, problem: null };
      if (outcome.problem !== null || outcome.block === null) return { blocks, problem: outcome.problem };
      const { block } = outcome;
      if (parentHash !== null && block.parentHash !== parentHash) {
        // If this node contradicted its own blocks, the first block of the next run will show it.
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

/** The result of a read, which need not be awaited. @throws errors that are not the node's fault */
function awaitOutcome(reading: Promise<SolidBlock | null>): Promise<Outcome> {
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
