import type { Answer } from '../../support/stack.ts';
import { availableOn, type CardState, effect, fail, releaseIfBlocked, tell } from './card-state.ts';
import { namesStatus, outcomeOf, type Verb } from './operation.ts';

const FROM: Record<Verb, CardState['status'][]> = {
  freeze: ['active'],
  unfreeze: ['frozen'],
  block: ['active', 'frozen'],
};
const TO = { freeze: 'frozen', unfreeze: 'active', block: 'blocked' } as const;

/** The rules of docs/partners/card-status.md. */
export function decideChange(
  state: CardState,
  { op, verb, answer }: { op: string; verb: Verb; answer: Answer },
): CardState[] {
  const isPossible = FROM[verb].includes(state.status);
  const outcome = outcomeOf(answer);
  if (outcome === '409 invalid_state') {
    return !isPossible && namesStatus(answer, state.status) ? [state] : [];
  }
  if (outcome !== '200' || !isPossible) return [];
  const { id, status, balance, available_balance: available } = answer.json;
  const to = TO[verb];
  const changed = { ...state, status: to };
  const freed = verb === 'block' ? release(changed, op) : changed;
  const told = tell(freed, `card.${to === 'active' ? 'unfrozen' : to} ${id}`);
  const done = verb === 'block' ? failTopUps(told) : told;
  return status === to && balance === done.balance && available === availableOn(done) ? [done] : [];
}

/** What nothing holds of the card's balance goes to the partner's balance. */
function release(state: CardState, op: string): CardState {
  const released = releaseIfBlocked({ ...state, networkBlocked: true }, op);
  return { ...released, effects: [...released.effects, effect(op, { openCards: -1 })] };
}

/** What is held for its top-ups in flight is free again. Its authorizations and withdrawals stay. */
function failTopUps(state: CardState): CardState {
  const topUps = state.pending.filter(({ what }) => what === 'topup');
  return topUps.reduce((left, one) => fail(left, one, 'card_blocked', 'card_blocked'), state);
}
