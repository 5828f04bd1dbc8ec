import type { Answer } from '../../support/stack.ts';
import type { Card } from '../account.ts';
import { Difference } from '../difference.ts';
import { type CardState, fail, type Pending, succeed } from '../rules/card-state.ts';
import { decide, isOver } from '../rules/decide.ts';
import type { Circumstances, Operation } from '../rules/operation.ts';
import { describeOperation } from '../rules/operation.ts';
import { type ReadCard, wrongOf } from './wrong-of.ts';

type Resource = Answer['json'];

/**
 * The state of a card that explains every answer since the last quiet point and all that can be read now.
 * @param read undefined if there must be no card
 */
export function explainCard(card: Card, read: ReadCard | undefined): CardState {
  const { account, steps, log } = card;
  const byId = (resources: Resource[]) =>
    resources.map((resource): [string, Resource] => [resource.id, resource]);
  const listed = byId(read?.transactions ?? []);
  const { mode, prices, controls } = account;
  const isNewDecline = ([id, { type, authorization_id }]: [string, Resource]) =>
    type === 'decline' && authorization_id !== null && !card.transactions.has(id);
  const circumstances: Circumstances = {
    mode,
    prices,
    accountControls: controls,
    transactions: new Map(listed),
    declines: listed.filter(isNewDecline).map(([id]) => id),
    authorizations: new Map(byId(read?.authorizations ?? [])),
  };
  let states: readonly CardState[] = card.states;
  for (const step of steps) {
    const before = states;
    states = explainStep(before, step, circumstances);
    if (states.length > 0) continue;
    throw new Difference(`${account.name}, ${card.id}: no order of these operations explains the answers`, [
      ...step.map(describeOperation),
      ...listed.filter(([id]) => isAbout(step, id)).map(([, one]) => `listed: ${JSON.stringify(one)}`),
      ...before.map((state) => `in state ${JSON.stringify(state)}`),
      `prices ${JSON.stringify(prices)}, controls ${JSON.stringify(controls)}; every request about the card:`,
      ...log,
    ]);
  }
  const quiet = explainQuiet(states, circumstances);
  const judged = quiet.map((state) => ({
    state,
    wrong: read === undefined ? wrongOfNone(state) : wrongOf(card, state, read),
  }));
  const [best] = judged.sort((a, b) => a.wrong.length - b.wrong.length);
  if (best?.wrong.length === 0) return best.state;
  throw new Difference(`${account.name}, ${card.id}: what can be read does not follow from the answers`, [
    ...(best?.wrong ?? ['no state explains that nothing is in flight']),
    `prices ${JSON.stringify(prices)}, controls ${JSON.stringify(controls)}; every request about the card:`,
    ...log,
  ]);
}

function isAbout(step: readonly Operation[], transactionId: string): boolean {
  return step.some(
    ({ answer: { json } }) => json?.id === transactionId || json?.transactionId === transactionId,
  );
}

function wrongOfNone(state: CardState): string[] {
  return state.status === 'none' && state.events.length === 0
    ? []
    : [`there is no card: ${JSON.stringify(state)}`];
}

/**
 * Every state that the card can be in after operations that ran at the same time: the results of all serial orders in which
 * each of them gets the answer it got, while what is in flight may end in between. None if there is no such order.
 */
function explainStep(
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
function explainQuiet(states: readonly CardState[], circumstances: Circumstances): CardState[] {
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
