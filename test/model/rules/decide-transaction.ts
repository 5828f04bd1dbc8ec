import type { Answer } from '../../support/stack.ts';
import { type CardState, type Entry, effect } from './card-state.ts';
import {
  type Circumstances,
  namesStatus,
  outcomeOf,
  type Question,
  type TransactionType,
} from './operation.ts';
import { transactionFees } from './prices.ts';

type Transaction = Question & { kind: 'transaction' };

/** A purchase, decline or refund, simulated or reported by the network. */
export function decideTransaction(
  state: CardState,
  { op, question, answer }: { op: string; question: Transaction; answer: Answer },
  { prices, transactions }: Circumstances,
): CardState[] {
  const { simulated, cents } = question;
  const outcome = outcomeOf(answer);
  if (simulated && outcome === '409 invalid_state') {
    return state.status !== 'active' && namesStatus(answer, state.status) ? [state] : [];
  }
  const possibleIn = simulated ? ['active'] : ['active', 'frozen', 'blocked'];
  if (outcome !== (simulated ? '201' : '200') || !possibleIn.includes(state.status)) return [];

  const reason = declineReason(state, question);
  const type: TransactionType = reason === null ? question.type : 'decline';
  const chargedTo = reason === null && state.status === 'blocked' ? 'partner_balance' : 'card';
  const moved = reason !== null ? 0 : type === 'refund' ? cents : -cents;
  const fees = transactionFees(prices, type, cents);
  const balance = state.balance + (chargedTo === 'card' ? moved : 0);
  const expected = {
    ...{ type, status: reason === null ? 'settled' : 'declined', amount: cents, fees },
    ...{ decline_reason: reason, charged_to: chargedTo, card_balance_after: balance },
  };
  const id: string = simulated ? answer.json.id : answer.json.transactionId;
  const told = transactions.get(id);
  if (told === undefined || !has(told, expected) || (simulated && !has(answer.json, expected))) return [];

  const late: Entry = { type: type === 'refund' ? 'late_refund' : 'late_debit', cents: moved, source: id };
  const entries = [
    ...(chargedTo === 'card' ? [] : [late]),
    ...fees.map((fee) => ({ type: `${fee.type}_fee`, cents: -fee.amount, source: id })),
  ];
  const availableCents = entries.reduce((sum, entry) => sum + entry.cents, 0);
  return [
    {
      ...state,
      balance,
      entries: [...state.entries, ...entries],
      events: [...state.events, `card.transaction.created ${id}`],
      effects: [...state.effects, effect(op, { availableCents })],
    },
  ];
}

/** The rules of docs/partners/transactions.md; null: it is settled. */
function declineReason(
  { status, balance }: CardState,
  { type, forced, simulated, cents }: Transaction,
): string | null {
  if (type === 'decline') return simulated ? 'simulated_decline' : 'declined_by_network';
  if (type === 'refund') return null;
  if (status === 'frozen') return 'card_frozen';
  if (status === 'blocked') return forced ? null : 'card_blocked';
  return cents > balance ? 'insufficient_card_balance' : null;
}

function has(resource: Answer['json'], expected: Record<string, unknown>): boolean {
  return Object.entries(expected).every(
    ([field, value]) => JSON.stringify(resource[field]) === JSON.stringify(value),
  );
}
