import type { Answer } from '../../support/stack.ts';
import { availableOn, begin, type CardState, type Pending, succeed, tell } from './card-state.ts';
import { type Circumstances, namesStatus, outcomeOf, type Question } from './operation.ts';
import { fundingFees, sumOf } from './prices.ts';
import { sameControls } from './spending.ts';

interface AskedFunding {
  op: string;
  question: Question & { kind: 'issue' | 'top_up' };
  answer: Answer;
}

/** An issuance or a top-up. Limits and funds are shared by the account's cards, so they are judged elsewhere. */
export function decideFunding(
  state: CardState,
  { op, question, answer }: AskedFunding,
  { mode, prices }: Circumstances,
): CardState[] {
  const { cents } = question;
  const isIssue = question.kind === 'issue';
  const refTaken = isIssue && question.refTaken;
  const isPossible = state.status === (isIssue ? 'none' : 'active');
  const asked = isIssue ? { ...state, controls: question.controls } : state;
  const refused: CardState = { ...state, ended: { ...state.ended, [op]: 'refused' } };
  const outcome = outcomeOf(answer);
  const pending: Pending = {
    op,
    what: isIssue ? 'card' : 'topup',
    id: outcome === '201' || outcome === '202' ? answer.json.id : null,
    cents,
    fees: fundingFees(prices, isIssue ? 'card' : 'topup', cents),
    announced: outcome === '202',
    tooLate: state.networkBlocked,
  };
  switch (outcome) {
    case '402 insufficient_funds':
    case '422 limit_exceeded':
      return isPossible ? [refused] : [];
    case '409 external_ref_taken':
      return refTaken ? [refused] : [];
    case '409 invalid_state':
      if (isIssue) return [];
      if (!isPossible) return namesStatus(answer, state.status) ? [refused] : [];
      // If possible, it has begun, and a block ended it.
      return mode === 'live' ? [begin(asked, pending)] : [];
    case '402 provider_declined':
      return isPossible && !refTaken && mode === 'live' ? [begin(asked, pending)] : [];
    case '201':
    case '202': {
      if (!isPossible || refTaken || !isDescribed(answer.json, pending)) return [];
      if (isIssue && !sameControls(answer.json.spending_controls, question.controls)) return [];
      if (mode === 'live') return [begin(asked, pending)];
      const done = succeed(begin(asked, pending), pending);
      const isSaid = isIssue || answer.json.card_balance === done.balance;
      return outcome === '201' && isSaid ? [done] : [];
    }
    default:
      return [];
  }
}

function isDescribed(json: Answer['json'], { what, cents, fees, announced }: Pending): boolean {
  const expected =
    what === 'card'
      ? { status: announced ? 'funding_pending' : 'active', balance: announced ? 0 : cents }
      : { status: announced ? 'pending' : 'succeeded', amount: cents, total_debited: cents + sumOf(fees) };
  const isSame = Object.entries(expected).every(([field, value]) => json[field] === value);
  return isSame && (what === 'card' || JSON.stringify(json.fees) === JSON.stringify(fees));
}

/** A withdrawal (docs/partners/withdrawals.md). */
export function decideWithdrawal(
  state: CardState,
  { op, question, answer }: { op: string; question: Question & { kind: 'withdraw' }; answer: Answer },
  { mode }: Circumstances,
): CardState[] {
  const { cents } = question;
  const isPossible = state.status === 'active' || state.status === 'frozen';
  const isThere = availableOn(state) >= cents;
  const refused: CardState = { ...state, ended: { ...state.ended, [op]: 'refused' } };
  const outcome = outcomeOf(answer);
  if (outcome === '409 invalid_state') {
    return !isPossible && namesStatus(answer, state.status) ? [refused] : [];
  }
  if (outcome === '402 insufficient_card_balance') return isPossible && !isThere ? [refused] : [];
  if (!isPossible || !isThere) return [];
  const pending: Pending = {
    op,
    what: 'withdrawal',
    id: outcome === '201' || outcome === '202' ? answer.json.id : null,
    cents,
    fees: [],
    announced: outcome === '202',
    tooLate: state.networkBlocked,
  };
  if (outcome === '402 provider_declined') return mode === 'live' ? [begin(state, pending)] : [];
  if (outcome !== '201' && outcome !== '202') return [];
  const { status, amount, card_balance: cardBalance } = answer.json;
  if (status !== (outcome === '201' ? 'succeeded' : 'pending') || amount !== cents) return [];
  if (mode === 'live') return [begin(state, pending)];
  const done = succeed(begin(state, pending), pending);
  return outcome === '201' && cardBalance === done.balance ? [done] : [];
}

export function decideControl(
  state: CardState,
  { question, answer }: { question: Question & { kind: 'control' }; answer: Answer },
): CardState[] {
  const { controls } = question;
  if (outcomeOf(answer) === '409 invalid_state') return state.status === 'failed' ? [state] : [];
  const { id, status, balance, available_balance: available, spending_controls: shown } = answer.json;
  const isShown = status === state.status && balance === state.balance && available === availableOn(state);
  if (outcomeOf(answer) !== '200' || !isShown || !sameControls(shown, controls)) return [];
  if (sameControls(controls, state.controls)) return [state];
  return [tell({ ...state, controls }, `card.updated ${id}`)];
}
