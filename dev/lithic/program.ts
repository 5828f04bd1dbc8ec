import { randomUUID } from 'node:crypto';
import type Lithic from 'lithic';
import { AUTHORIZATIONS_PATH, EVENTS_PATH } from '../../issuers/lithic/wire.ts';
import {
  type Card,
  type DetailedResult,
  type EventAsked,
  type MerchantAsked,
  makeAuthorizationRequest,
  makeEvent,
  makeTransaction,
  type Result,
  type Transaction,
} from './objects.ts';
import { type PostOptions, Posts } from './posts.ts';

export type AuthorizationStatus = Lithic.CardAuthorization['status'];

interface AuthorizeAsked extends MerchantAsked {
  card: Card;
  /** Cents. */
  amount: number;
  status?: AuthorizationStatus | undefined;
}

/** What a program has made. */
export interface Books {
  cards: Card[];
  transactions: Transaction[];
}

/** One card program: its cards and transactions, and what becomes of them. */
export class Program {
  readonly cards = new Map<string, Card>();
  readonly transactions = new Map<string, Transaction>();
  readonly posts: Posts;
  /**
   * Where Lithic asks whether cards pay; null if no responder endpoint is enrolled, so that Lithic approves
   * by itself.
   */
  responderUrl: string | null;
  /** What it tells of events, and to whom; null: a subscription for each receiver that it posts to. */
  subscriptions: Lithic.EventSubscription[] | null = null;
  /** Whether its requests name their events, as only some programs' do. */
  sendsEventTokens = false;
  /** Whether it approves in our stead, without asking. */
  standsIn = false;
  #aheadMs = 0;

  constructor(options: PostOptions) {
    this.posts = new Posts(options);
    this.responderUrl = options.receiverUrl && options.receiverUrl + AUTHORIZATIONS_PATH;
  }

  eventSubscriptions(): Lithic.EventSubscription[] {
    if (this.subscriptions !== null) return this.subscriptions;
    const { receiverUrl } = this.posts.options;
    if (receiverUrl === null) return [];
    return [{ token: 'subscription', description: '', disabled: false, url: receiverUrl + EVENTS_PATH }];
  }

  books(): Books {
    return { cards: [...this.cards.values()], transactions: [...this.transactions.values()] };
  }

  load({ cards, transactions }: Books): void {
    for (const card of cards) this.cards.set(card.token, card);
    for (const transaction of transactions) this.transactions.set(transaction.token, transaction);
  }

  now(): Date {
    return new Date(Date.now() + this.#aheadMs);
  }

  /** Moves its clock forward. */
  advance(ms: number): void {
    this.#aheadMs += ms;
  }

  /** A merchant asks for money, or to give some. */
  authorize(asked: AuthorizeAsked): Promise<Transaction> {
    const transaction = makeTransaction(asked.card, asked, this.now());
    this.transactions.set(transaction.token, transaction);
    return this.#decide(transaction, asked.card, asked.amount, asked.status ?? 'AUTHORIZATION');
  }

  /** The merchant asks for more. */
  increment(token: string, amount: number): Promise<Transaction> {
    const transaction = this.transaction(token);
    return this.#decide(transaction, this.card(transaction.card_token), amount, 'AUTHORIZATION');
  }

  async #decide(
    transaction: Transaction,
    card: Card,
    amount: number,
    status: AuthorizationStatus,
  ): Promise<Transaction> {
    const token = randomUUID();
    const { result, detailedResult } = await this.#askOrDecide(transaction, card, { amount, status, token });
    const polarity = status.includes('CREDIT') ? 'CREDIT' : 'DEBIT';
    this.record(transaction, { type: status, amount, polarity, result, detailedResult, token });
    return transaction;
  }

  async #askOrDecide(
    transaction: Transaction,
    card: Card,
    { amount, status, token }: { amount: number; status: AuthorizationStatus; token: string },
  ): Promise<{ result: Result; detailedResult: DetailedResult }> {
    if (card.state === 'PAUSED') return { result: 'CARD_PAUSED', detailedResult: 'CARD_PAUSED' };
    if (card.state === 'CLOSED') return { result: 'CARD_CLOSED', detailedResult: 'CARD_CLOSED' };
    if (this.responderUrl === null || this.standsIn)
      return { result: 'APPROVED', detailedResult: 'APPROVED' };
    const eventToken = this.sendsEventTokens ? token : null;
    const answer = await this.posts.ask(
      makeAuthorizationRequest(transaction, card, { amount, status, eventToken }),
    );
    if (answer === null) return { result: 'UNKNOWN_HOST_TIMEOUT', detailedResult: 'CUSTOMER_ASA_TIMEOUT' };
    return (
      ANSWERED[answer] ?? {
        result: 'DECLINED',
        detailedResult: answer === 'MALFORMED' ? 'MALFORMED_ASA_RESPONSE' : 'CUSTOM_ASA_RESULT',
      }
    );
  }

  /** Something that happens without a card or a request, such as a refund. */
  begin(card: Card, merchant: MerchantAsked, event: EventAsked): Transaction {
    const transaction = makeTransaction(card, merchant, this.now());
    this.transactions.set(transaction.token, transaction);
    this.record(transaction, event);
    return transaction;
  }

  /** Adds an event to a transaction, with what follows from it, and tells us. */
  record(transaction: Transaction, asked: EventAsked): void {
    const event = makeEvent(asked, this.now());
    transaction.events.push(event);
    transaction.updated = event.created;
    if (event.result === 'APPROVED') this.#apply(transaction, asked);
    if (transaction.events.length === 1) {
      transaction.result = event.result;
      if (event.result !== 'APPROVED') transaction.status = 'DECLINED';
    }
    this.posts.tell(transaction);
  }

  #apply(transaction: Transaction, { type, amount, polarity = 'DEBIT' }: EventAsked): void {
    const { hold, settlement } = transaction.amounts;
    const sign = polarity === 'CREDIT' ? -1 : 1;
    if (type === 'AUTHORIZATION' || type === 'CREDIT_AUTHORIZATION') hold.amount += sign * amount;
    else if (type === 'AUTHORIZATION_ADVICE') hold.amount = amount;
    else if (type === 'AUTHORIZATION_REVERSAL') hold.amount -= sign * Math.min(amount, Math.abs(hold.amount));
    else if (type === 'AUTHORIZATION_EXPIRY') hold.amount = 0;
    else if (type === 'CLEARING') hold.amount = Math.max(0, hold.amount - amount);
    if (/^(CLEARING|FINANCIAL|RETURN)/.test(type)) {
      settlement.amount += sign * amount;
      transaction.status = 'SETTLED';
    } else if (hold.amount === 0) {
      transaction.status = type === 'AUTHORIZATION_EXPIRY' ? 'EXPIRED' : 'VOIDED';
    }
  }

  transaction(token: string): Transaction {
    const transaction = this.transactions.get(token);
    if (transaction === undefined) throw new Error(`the fake Lithic has no transaction ${token}`);
    return transaction;
  }

  card(token: string): Card {
    const card = this.cards.get(token);
    if (card === undefined) throw new Error(`the fake Lithic has no card ${token}`);
    return card;
  }
}

const ANSWERED: Record<string, { result: Result; detailedResult: DetailedResult }> = {
  APPROVED: { result: 'APPROVED', detailedResult: 'APPROVED' },
  CARD_PAUSED: { result: 'CARD_PAUSED', detailedResult: 'CARD_PAUSED' },
  INSUFFICIENT_FUNDS: { result: 'INSUFFICIENT_FUNDS', detailedResult: 'INSUFFICIENT_FUNDS' },
  UNAUTHORIZED_MERCHANT: { result: 'UNAUTHORIZED_MERCHANT', detailedResult: 'UNAUTHORIZED_MERCHANT' },
  VELOCITY_EXCEEDED: { result: 'USER_TRANSACTION_LIMIT', detailedResult: 'CARD_SPEND_LIMIT_EXCEEDED' },
};
