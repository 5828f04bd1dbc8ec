import type { Answer } from '../../support/stack.ts';
import { type CardState, fail, succeed } from './card-state.ts';
import { decideChange } from './decide-change.ts';
import { decideFunding } from './decide-funding.ts';
import { decideTransaction } from './decide-transaction.ts';
import { type Circumstances, type Operation, outcomeOf } from './operation.ts';

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
    case 'read': {
      const { status, balance } = answer.json;
      const isSo = outcomeOf(answer) === '200' && status === state.status && balance === state.balance;
      return isSo ? [state] : [];
    }
    case 'read_topups':
      return outcomeOf(answer) === '200' && listsTopUps(answer.json.data, state) ? [state] : [];
    case 'resolve': {
      const pending = state.pending.find(({ op }) => op === question.subject);
      if (pending === undefined) return [state];
      return [question.succeeded ? succeed(state, pending) : fail(state, pending, 'operator_failed')];
    }
  }
}

/** Top-ups whose ids no answer contains will fail, and are pending until then. */
function listsTopUps(listed: Answer['json'][], { topUps, pending }: CardState): boolean {
  const known = new Map(topUps.map((topUp) => [topUp.id, topUp.status]));
  const unknown = pending.filter(({ what, id }) => what === 'topup' && id === null);
  return (
    listed.length === topUps.length + unknown.length &&
    listed.every(({ id, status }) => status === (known.get(id) ?? 'pending'))
  );
}

/** Whether everything in the answer has happened by now. */
export function isOver({ ended }: CardState, { name, question, answer }: Operation): boolean {
  if (question.kind !== 'issue' && question.kind !== 'top_up') return true;
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
