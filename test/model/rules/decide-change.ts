import type { Answer } from '../../support/stack.ts';
import { type CardState, effect, fail } from './card-state.ts';
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
  const { id, status, balance } = answer.json;
  const to = TO[verb];
  const event = `card.${to === 'active' ? 'unfrozen' : to} ${id}`;
  const changed = { ...state, status: to, events: [...state.events, event] };
  const done = verb === 'block' ? release(changed, op, id) : changed;
  return status === to && balance === done.balance ? [done] : [];
}

/** The card's balance, and what is held for its top-ups in flight, goes to the partner's balance. */
function release(state: CardState, op: string, cardId: string): CardState {
  const { balance } = state;
  const entry = { type: 'card_release', cents: balance, source: cardId };
  const released: CardState = {
    ...state,
    balance: 0,
    networkBlocked: true,
    entries: balance > 0 ? [...state.entries, entry] : state.entries,
    effects: [...state.effects, effect(op, { availableCents: balance, openCards: -1 })],
  };
  return state.pending.reduce((left, one) => fail(left, one, 'card_blocked', 'card_blocked'), released);
}
