import type { Answer } from '../../support/stack.ts';
import { begin, type CardState, type Pending, succeed } from './card-state.ts';
import { type Circumstances, namesStatus, outcomeOf, type Question } from './operation.ts';
import { fundingFees, sumOf } from './prices.ts';

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
      return mode === 'live' ? [begin(state, pending)] : [];
    case '402 provider_declined':
      return isPossible && !refTaken && mode === 'live' ? [begin(state, pending)] : [];
    case '201':
    case '202': {
      if (!isPossible || refTaken || !isDescribed(answer.json, pending)) return [];
      if (mode === 'live') return [begin(state, pending)];
      const done = succeed(begin(state, pending), pending);
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
