import type { Answer } from '../../support/stack.ts';
import { shown, shownBy } from './authorization.ts';
import { availableOn, type CardState, effect, fail, releaseIfBlocked, succeed, tell } from './card-state.ts';
import { decideAuthorize, decideClear, decideGiveBack, decideIncrement } from './decide-authorization.ts';
import { decideControl, decideFunding, decideWithdrawal } from './decide-funding.ts';
import { decideTransaction } from './decide-transaction.ts';
import { type Circumstances, namesStatus, type Operation, outcomeOf, type Verb } from './operation.ts';
import { limitsOn, sameControls } from './spending.ts';

/**
 * The states in which an operation can leave the card if it is decided now with the answer it got; none if the answer does not
 * fit this state.
 */
export function decide(state: CardState, operation: Operation, circumstances: Circumstances): CardState[] {
  const { name, question, answer } = operation;
  switch (question.kind) {
    case 'issue':
    case 'top_up':
      return decideFunding(state, { op: name, question, answer }, circumstances);
    case 'transaction':
      return decideTransaction(state, { op: name, question, answer }, circumstances);
    case 'change':
      return decideChange(state, { op: name, verb: question.verb, answer });
    case 'withdraw':
      return decideWithdrawal(state, { op: name, question, answer }, circumstances);
    case 'authorize':
      return decideAuthorize(state, { op: name, question, answer }, circumstances);
    case 'increment':
      return decideIncrement(state, { op: name, question, answer }, circumstances);
    case 'clear':
      return decideClear(state, { op: name, question, answer }, circumstances);
    case 'reverse':
    case 'expire':
    case 'lapse':
      return decideGiveBack(state, { op: name, question, answer }, circumstances);
    case 'control':
      return decideControl(state, { question, answer });
    case 'resolve': {
      const pending = state.pending.find(({ op }) => op === question.subject);
      if (pending === undefined) return [state];
      return [question.succeeded ? succeed(state, pending) : fail(state, pending, 'operator_failed')];
    }
    default:
      return outcomeOf(answer) === '200' && reads(state, operation, circumstances) ? [state] : [];
  }
}

function reads(
  state: CardState,
  { question, answer: { json } }: Operation,
  { accountControls }: Circumstances,
): boolean {
  switch (question.kind) {
    case 'read': {
      const { status, balance, available_balance: available, spending_controls: controls } = json;
      const isMoneySo = balance === state.balance && available === availableOn(state);
      return isMoneySo && status === state.status && sameControls(controls, state.controls);
    }
    case 'read_topups':
      return lists(json.data, state, 'topup');
    case 'read_withdrawals':
      return lists(json.data, state, 'withdrawal');
    case 'read_limits': {
      const today = new Date().toISOString().slice(0, 10);
      return JSON.stringify(json.data) === JSON.stringify(limitsOn(state, accountControls, today));
    }
    case 'read_authorization': {
      const authorization = state.authorizations.find(({ id }) => id === question.authorization);
      if (authorization === undefined) return false;
      return JSON.stringify(shownBy(json)) === JSON.stringify(shown(authorization));
    }
    default:
      return false;
  }
}

/** Top-ups and withdrawals whose ids no answer contains will fail, and are pending until then. */
function lists(listed: Answer['json'][], state: CardState, what: 'topup' | 'withdrawal'): boolean {
  const all = what === 'topup' ? state.topUps : state.withdrawals;
  const known = new Map(all.map(({ id, status }) => [id, status]));
  const unknown = state.pending.filter((pending) => pending.what === what && pending.id === null);
  return (
    listed.length === all.length + unknown.length &&
    listed.every(({ id, status }) => status === (known.get(id) ?? 'pending'))
  );
}

/** Whether everything in the answer has happened by now. */
export function isOver({ ended }: CardState, { name, question, answer }: Operation): boolean {
  if (!['issue', 'top_up', 'withdraw'].includes(question.kind)) return true;
  switch (outcomeOf(answer)) {
    case '201':
      return ended[name] === 'succeeded';
    case '402 provider_declined':
      return ended[name] === 'failed';
    case '409 invalid_state':
      return ended[name] === 'refused' || ended[name] === 'card_blocked';
    default:
      return true;
  }
}

const FROM: Record<Verb, CardState['status'][]> = {
  freeze: ['active'],
  unfreeze: ['frozen'],
  block: ['active', 'frozen'],
};
const TO = { freeze: 'frozen', unfreeze: 'active', block: 'blocked' } as const;

/** The rules of docs/partners/card-status.md. */
function decideChange(
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

function release(state: CardState, op: string): CardState {
  const released = releaseIfBlocked({ ...state, networkBlocked: true }, op);
  return { ...released, effects: [...released.effects, effect(op, { openCards: -1 })] };
}

/** What is held for its top-ups in flight is free again. Its authorizations and withdrawals stay. */
function failTopUps(state: CardState): CardState {
  const topUps = state.pending.filter(({ what }) => what === 'topup');
  return topUps.reduce((left, one) => fail(left, one, 'card_blocked', 'card_blocked'), state);
}
