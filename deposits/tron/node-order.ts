import { BEHIND_BLOCKS, type TronNode } from './tron-node.ts';

/**
 * Solid blocks that a node may be ahead of every other one, beside those made since the other's newest block.
 */
const MAX_AHEAD_BLOCKS = 400;
/** How far a block's time may be ahead of our clock. */
const CLOCK_SKEW_MS = 300_000;

/**
 * The sound nodes first, those with the newest blocks leading; then those whose backoff has passed. Among
 * equals, the faster ones come first.
 */
export function inOrder(nodes: readonly TronNode[]): TronNode[] {
  const newest = Math.max(...nodes.map((node) => (node.health.isSound ? (node.newest?.number ?? 0) : 0)));
  const rank = (node: TronNode) => {
    if (!node.health.isSound) return 2;
    return (node.newest?.number ?? newest) + BEHIND_BLOCKS < newest ? 1 : 0;
  };
  return nodes
    .filter(({ health }) => health.isDue)
    .toSorted((a, b) => rank(a) - rank(b) || a.slowness - b.slowness);
}

/** What is known of a node's height. */
interface Heard {
  newest: { number: number; time: Date } | null;
  health: Pick<TronNode['health'], 'isSound' | 'problem'>;
}

/**
 * Whether a node claims more blocks than there can be, according to every other one, and at least `needed` of
 * them. Those that are too far ahead themselves are heard, since what is wrong may be the rest.
 */
export function isFarAhead(node: Heard, nodes: readonly Heard[], needed: number): boolean {
  const { newest } = node;
  if (newest === null) return false;
  const others = nodes.flatMap((other) => {
    if (other === node || other.newest === null) return [];
    if (!other.health.isSound && other.health.problem?.code !== 'too_far_ahead') return [];
    const ageMs = Date.now() - other.newest.time.getTime();
    // A block from the future doesn't say how many there are by now.
    return ageMs < -CLOCK_SKEW_MS ? [] : [{ number: other.newest.number, ageMs: Math.max(0, ageMs) }];
  });
  if (others.length < needed) return false;
  return others.every(({ number, ageMs }) => newest.number - number > ageMs / 1_000 + MAX_AHEAD_BLOCKS);
}
