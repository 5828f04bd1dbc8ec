import type { Answer } from '../../support/stack.ts';
import { availableOn, type CardState, enter, tell } from './card-state.ts';
import type { Merchant } from './controls.ts';
import {
  type Circumstances,
  dayOf,
  namesStatus,
  outcomeOf,
  type Question,
  type TransactionType,
} from './operation.ts';
import { transactionFees } from './prices.ts';
import { buy, refusalOf } from './spending.ts';

type Transaction = Question & { kind: 'transaction' };

export function decideTransaction(
  state: CardState,
  { op, question, answer }: { op: string; question: Transaction; answer: Answer },
  circumstances: Circumstances,
): CardState[] {
  const { simulated, cents, merchant } = question;
  const isTest = circumstances.mode === 'test';
  const outcome = outcomeOf(answer);
  if (simulated && outcome === '409 invalid_state') {
    return state.status !== 'active' && namesStatus(answer, state.status) ? [state] : [];
  }
  const possibleIn = simulated ? ['active'] : ['active', 'frozen', 'blocked'];
  if (outcome !== (isTest ? '201' : '200') || !possibleIn.includes(state.status)) return [];
  const id: string = isTest ? answer.json.id : answer.json.transactionId;
  const told = circumstances.transactions.get(id);
  if (told === undefined) return [];

  const day = dayOf(told);
  const reason = declineReason(state, question, day, circumstances);
  const type: TransactionType = reason === null ? question.type : 'decline';
  const onPartner = reason === null && state.status === 'blocked';
  const moved = type === 'decline' ? 0 : type === 'refund' ? cents : -cents;
  const paid = onPartner ? state : { ...state, balance: state.balance + moved };
  const booking: Booking = {
    op,
    id,
    type,
    cents,
    reason,
    merchant,
    partnerCents: onPartner ? cents : 0,
    authorizationId: null,
  };
  const booked = book(
    type === 'decline' ? paid : buy(paid, id, { day, category: merchant.category_code, cents: -moved }),
    booking,
    {
      circumstances,
      answers: isTest ? [answer.json] : [],
    },
  );
  return booked === null ? [] : [booked];
}

/** The rules of docs/partners/transactions.md; null: it is settled. */
function declineReason(
  state: CardState,
  { type, forced, simulated, cents, merchant }: Transaction,
  day: string,
  { accountControls }: Circumstances,
): string | null {
  if (type === 'decline') return simulated ? 'simulated_decline' : 'declined_by_network';
  if (type === 'refund') return null;
  if (state.status === 'blocked' && forced) return null;
  return reasonAgainst(state, accountControls, { cents, wholeCents: cents, needed: cents, merchant, day });
}

/** Why a card does not pay, in the order of docs/partners/authorizations.md. @param asked.needed what it has to have */
export function reasonAgainst(
  state: CardState,
  accountControls: Circumstances['accountControls'],
  asked: { cents: number; wholeCents: number; needed: number; merchant: Merchant; day: string },
): string | null {
  if (state.status === 'frozen') return 'card_frozen';
  if (state.status === 'blocked') return 'card_blocked';
  const refused = refusalOf(state, accountControls, asked);
  if (refused !== null) return refused;
  return asked.needed > availableOn(state) ? 'insufficient_card_balance' : null;
}

export interface Booking {
  op: string;
  id: string;
  type: TransactionType;
  cents: number;
  reason: string | null;
  merchant: Merchant;
  /** How much of it the prepaid balance pays or, of a refund, gets. */
  partnerCents: number;
  /** Undefined if it depends on what comes later. */
  authorizationId: string | null | undefined;
}

/**
 * Books a transaction on a card whose money has moved: its fee, the share of the prepaid balance, its event.
 * @param known.answers those that show it
 * @returns null if it is not shown like this
 */
export function book(
  state: CardState,
  { op, id, type, cents, reason, merchant, partnerCents, authorizationId }: Booking,
  { circumstances, answers }: { circumstances: Circumstances; answers: Answer['json'][] },
): CardState | null {
  const { prices, transactions } = circumstances;
  const fees = transactionFees(prices, type, cents);
  const cardCents = type === 'decline' ? 0 : cents - partnerCents;
  const expected = {
    type,
    status: type === 'decline' ? 'declined' : 'settled',
    amount: cents,
    fees,
    decline_reason: reason,
    charged_to:
      type === 'decline' ? null : partnerCents === 0 ? 'card' : cardCents === 0 ? 'partner_balance' : 'both',
    card_amount: cardCents,
    partner_balance_amount: partnerCents,
    card_balance_after: state.balance,
    merchant,
  };
  const shows = (resource: Answer['json']) =>
    has(resource, expected) &&
    (authorizationId === undefined || resource.authorization_id === authorizationId);
  if (![transactions.get(id), ...answers].every(shows)) return null;
  const late = type === 'refund' ? 'late_refund' : 'late_debit';
  const entries = [
    { type: late, cents: type === 'refund' ? partnerCents : -partnerCents, source: id },
    ...fees.map((fee) => ({ type: `${fee.type}_fee`, cents: -fee.amount, source: id })),
  ];
  return tell(enter(state, op, entries), `card.transaction.created ${id}`);
}

export function has(resource: Answer['json'], expected: object): boolean {
  return Object.entries(expected).every(
    ([field, value]) => JSON.stringify(resource?.[field]) === JSON.stringify(value),
  );
}
