import type { Answer } from '../../support/stack.ts';
import { shown, shownBy } from './authorization.ts';
import { availableOn, type CardState, fail, succeed } from './card-state.ts';
import { decideAuthorize, decideClear, decideGiveBack, decideIncrement } from './decide-authorization.ts';
import { decideChange } from './decide-change.ts';
import { decideControl, decideFunding, decideWithdrawal } from './decide-funding.ts';
import { decideTransaction } from './decide-transaction.ts';
import { type Circumstances, type Operation, outcomeOf } from './operation.ts';
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

/** Whether what was read is so. */
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
