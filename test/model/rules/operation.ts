import type { Answer } from '../../support/stack.ts';
import type { CardState } from './card-state.ts';
import type { Prices } from './prices.ts';

export type Verb = 'freeze' | 'unfreeze' | 'block';
export type TransactionType = 'purchase' | 'decline' | 'refund';

/** What was asked of a card. */
export type Question =
  /** `refTaken`: with the external_ref of another card. */
  | { kind: 'issue'; cents: number; refTaken: boolean }
  | { kind: 'top_up'; cents: number }
  /** `simulated` by the partner, or else reported by the network. */
  | { kind: 'transaction'; type: TransactionType; cents: number; forced: boolean; simulated: boolean }
  | { kind: 'change'; verb: Verb }
  | { kind: 'read' }
  | { kind: 'read_topups' }
  /** An operator's decision on the issuance or top-up that the operation `subject` began. */
  | { kind: 'resolve'; subject: string; succeeded: boolean };

/** An operation on a card, its last answer, and when it was sent and answered on the run's clock. */
export interface Operation {
  name: string;
  question: Question;
  answer: Answer;
  askedAt: number;
  heardAt: number;
}

/** The status, and the error's code if there is one. */
export function outcomeOf({ status, json }: Answer): string {
  return json?.error === undefined ? `${status}` : `${status} ${json.error.code}`;
}

/** Whether a refusal because of the card's status names that status. */
export function namesStatus({ json }: Answer, status: CardState['status']): boolean {
  return json.error.message.includes(`The card is ${status}`);
}

/** Its name in the tally. */
export function nameOf(question: Question): string {
  if (question.kind === 'transaction') return question.type;
  return question.kind === 'change' ? question.verb : question.kind;
}

/** One line for a person. */
export function describeOperation({ name, question, answer, askedAt, heardAt }: Operation): string {
  const { kind, ...details } = question;
  const { id, transactionId, status, type, balance, card_balance, card_balance_after, error } =
    answer.json ?? {};
  const told = {
    id,
    transactionId,
    status,
    type,
    balance,
    card_balance,
    card_balance_after,
    message: error?.message,
  };
  return `${name} [${askedAt}-${heardAt}] ${kind} ${JSON.stringify(details)} -> ${outcomeOf(answer)} ${JSON.stringify(told)}`;
}

/** What the rules depend on besides the card. */
export interface Circumstances {
  mode: 'test' | 'live';
  prices: Prices;
  /** What GET /cards/{id}/transactions returns, by id. The network's own answers have little more than the id. */
  transactions: ReadonlyMap<string, Answer['json']>;
}
