import { type CardState, fail, type Pending, succeed } from './card-state.ts';
import { decide, isOver } from './decide.ts';
import type { Circumstances, Operation } from './operation.ts';

/**
 * Every state that the card can be in after operations that ran at the same time: the results of all serial orders in which
 * each of them gets the answer it got, while what is in flight may end in between. None if there is no such order.
 */
export function explainStep(
  states: readonly CardState[],
  operations: readonly Operation[],
  circumstances: Circumstances,
): CardState[] {
  const seen = new Set<string>();
  const found = new Map<string, CardState>();
  const open = states.map((state) => ({ state, left: operations }));
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const { state, left } = node;
    const key = JSON.stringify([state, left.map(({ name }) => name)]);
    if (seen.has(key)) continue;
    seen.add(key);
    if (left.length === 0 && operations.every((operation) => isOver(state, operation))) {
      found.set(JSON.stringify(state), state);
    }
    for (const next of byThemselves(state, left, circumstances)) open.push({ state: next, left });
    for (const operation of left) {
      const others = left.filter((other) => other !== operation);
      for (const next of decide(state, operation, circumstances)) open.push({ state: next, left: others });
    }
  }
  return [...found.values()];
}

/** The states of a card with nothing left in flight that will end by itself. */
export function explainQuiet(states: readonly CardState[], circumstances: Circumstances): CardState[] {
  return explainStep(states, [], circumstances).filter((state) => !isUnfinished(state, circumstances));
}

/** Whether something will still end by itself. */
function isUnfinished(state: CardState, { mode }: Circumstances): boolean {
  const waitsForOperator = (pending: Pending) =>
    // A withdrawal that the network accepted before it blocked the card goes on.
    pending.what === 'withdrawal' && !pending.tooLate
      ? pending.cents % 100 === 47
      : endings(state, pending).length === 0;
  return mode === 'live' && !state.pending.every(waitsForOperator);
}

/** What can happen next by itself: the network ends something, or blocks a card that is being blocked. */
function byThemselves(state: CardState, left: readonly Operation[], { mode }: Circumstances): CardState[] {
  if (mode === 'test') return [];
  const ends = state.pending.flatMap((pending) => endings(state, pending));
  const isBeingBlocked = left.some(
    ({ question, answer }) =>
      question.kind === 'change' && question.verb === 'block' && answer.status === 200,
  );
  const isThere = state.status === 'active' || state.status === 'frozen';
  if (!isBeingBlocked || !isThere || state.networkBlocked) return ends;
  return [...ends, { ...state, networkBlocked: true }];
}

/**
 * The ends by the last two digits (docs/partners/testing.md). The network neither loads a blocked card nor begins to take money
 * off it.
 */
function endings(state: CardState, pending: Pending): CardState[] {
  const { what, cents, tooLate } = pending;
  if (tooLate) return [fail(state, pending, 'provider_declined')];
  const atBlock = what === 'topup' ? 'topup_failed' : 'provider_declined';
  const cut = what !== 'card' && state.networkBlocked ? [fail(state, pending, atBlock)] : [];
  switch (cents % 100) {
    case 42:
      return [fail(state, pending, 'provider_declined')];
    case 43:
      return [fail(state, pending, FAILURES[what]), ...cut];
    case 47:
      return cut;
    default:
      return [succeed(state, pending), ...cut];
  }
}

const FAILURES = { card: 'issuance_failed', topup: 'topup_failed', withdrawal: 'withdrawal_failed' } as const;
