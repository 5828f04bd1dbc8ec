import type { Answer } from '../../support/stack.ts';
import type { Card } from '../account.ts';
import { Difference } from '../difference.ts';
import type { CardState } from '../rules/card-state.ts';
import { explainQuiet, explainStep } from '../rules/explain.ts';
import { type Circumstances, describeOperation, type Operation } from '../rules/operation.ts';
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
