import type { Answer } from '../../support/stack.ts';
import type { CardState } from './card-state.ts';
import type { Controls, Merchant } from './controls.ts';
import type { Prices } from './prices.ts';

export type Verb = 'freeze' | 'unfreeze' | 'block';
export type TransactionType = 'purchase' | 'decline' | 'refund';

export type Question =
  /** `refTaken`: with the external_ref of another card. */
  | { kind: 'issue'; cents: number; refTaken: boolean; controls: Controls | null }
  | { kind: 'top_up'; cents: number }
  | { kind: 'withdraw'; cents: number }
  /** `simulated` by the partner, or else reported by the network or, in test mode, as if it had reported it. */
  | {
      kind: 'transaction';
      type: TransactionType;
      cents: number;
      forced: boolean;
      simulated: boolean;
      merchant: Merchant;
    }
  /** `networkId`: the network's id of the authorization; null in test mode. */
  | { kind: 'authorize'; cents: number; merchant: Merchant; networkId: string | null }
  /** `authorization`: our id of it in test mode, the network's in live mode. Here the merchant is for one that is unknown. */
  | {
      kind: 'increment';
      authorization: string;
      cents: number;
      merchant: Merchant;
      networkId: string | null;
    }
  /** `authorization`: null for a clearing without one. `cents`: null for all that is left. */
  | {
      kind: 'clear';
      authorization: string | null;
      cents: number | null;
      final: boolean;
      merchant: Merchant;
    }
  | { kind: 'reverse'; authorization: string; cents: number | null }
  | { kind: 'expire'; authorization: string }
  /** Its time is over, and a worker finds it. */
  | { kind: 'lapse'; authorization: string }
  | { kind: 'control'; controls: Controls | null }
  | { kind: 'change'; verb: Verb }
  | { kind: 'read' }
  | { kind: 'read_topups' }
  | { kind: 'read_withdrawals' }
  | { kind: 'read_limits' }
  | { kind: 'read_authorization'; authorization: string }
  /** An operator's decision on the issuance, top-up or withdrawal that the operation `subject` began. */
  | { kind: 'resolve'; subject: string; succeeded: boolean };

/** An operation on a card, its last answer, and when it was sent and answered on the run's clock. */
export interface Operation {
  name: string;
  question: Question;
  answer: Answer;
  askedAt: number;
  heardAt: number;
}

export function outcomeOf({ status, json }: Answer): string {
  return json?.error === undefined ? `${status}` : `${status} ${json.error.code}`;
}

/** Whether a refusal because of the card's status names that status. */
export function namesStatus({ json }: Answer, status: CardState['status']): boolean {
  return json.error.message.includes(`The card is ${status}`);
}

export function nameOf(question: Question): string {
  if (question.kind === 'transaction') return question.type;
  return question.kind === 'change' ? question.verb : question.kind;
}

export const dayOf = ({ created }: { created: string }): string => created.slice(0, 10);

export function describeOperation({ name, question, answer, askedAt, heardAt }: Operation): string {
  const { kind, ...details } = question;
  const told = Object.fromEntries(TOLD.map((field) => [field, answer.json?.[field]]));
  told.message = answer.json?.error?.message;
  return `${name} [${askedAt}-${heardAt}] ${kind} ${JSON.stringify(details)} -> ${outcomeOf(answer)} ${JSON.stringify(told)}`;
}

const TOLD = [
  ...['id', 'transactionId', 'authorizationId', 'messageId', 'status', 'type', 'approved', 'declineReason'],
  ...['decline_reason', 'balance', 'available_balance', 'card_balance', 'card_balance_after'],
  ...['amount', 'held_amount', 'settled_amount', 'card_amount', 'partner_balance_amount', 'data'],
];

export interface Circumstances {
  mode: 'test' | 'live';
  prices: Prices;
  accountControls: Controls | null;
  /** What GET /cards/{id}/transactions returns, by id. The network's own answers have little more than the id. */
  transactions: ReadonlyMap<string, Answer['json']>;
  /** The ids of the declines among them that are new since the last quiet point and are about an authorization. */
  declines: readonly string[];
  /** What GET /cards/{id}/authorizations returns, by id. */
  authorizations: ReadonlyMap<string, Answer['json']>;
}
