import { randomInt } from 'node:crypto';
import type { Increase } from 'increase';
import { makeDecision } from './decision-object.ts';
import { makeAccount, makeCard, makeTransfer } from './objects.ts';

export type Key = { path: string; id: string; body: string; createdMs: number };

/** Everything that the fake has made, as JSON, oldest first. */
export interface Books {
  accounts: Increase.Account[];
  cards: Increase.Card[];
  transfers: Increase.AccountTransfer[];
  payments: Increase.CardPayment[];
  pendingTransactions: Increase.PendingTransaction[];
  declinedTransactions: Increase.DeclinedTransaction[];
  decisions: Increase.RealTimeDecision[];
  events: Increase.Event[];
  subscriptions: (Increase.EventSubscription & { shared_secret: string })[];
  /** What each account has, without what is held on it. */
  cents: Record<string, number>;
  /** By card: only the details' answer has it. */
  pans: Record<string, string>;
  /** By Idempotency-Key. */
  keys: Record<string, Key>;
}

/** An answer that is no success, in Increase's words. */
export class BankError extends Error {
  readonly status: number;
  readonly body: Record<string, unknown>;

  constructor(status: number, type: string, more: Record<string, unknown> = {}) {
    super(type);
    this.status = status;
    this.body = {
      type,
      title: `It is ${type}.`,
      detail: 'Some detail that may quote the request.',
      status,
      ...more,
    };
  }
}

/** Increase documents no end; other issuers forget keys after a day. */
const KEY_LIFETIME_MS = 24 * 3_600_000;

const INVALID = () => new BankError(409, 'invalid_operation_error');

/** @throws BankError if there is none with this id */
export function findObject<Body extends { id: string }>(
  objects: readonly Body[],
  id: string | undefined,
): Body {
  const found = objects.find((object) => object.id === id);
  if (found === undefined) throw new BankError(404, 'object_not_found_error');
  return found;
}

/** Accounts, cards and money at the fake Increase. */
export class Bank {
  readonly books: Books;
  /** The clock of everything here, which a test can put forward. */
  aheadMs = 0;
  /** Whether a transfer waits for somebody's approval, whatever the request says. */
  transfersNeedApproval = false;
  /** Transfers of this amount are refused. */
  refusedCents: number | null = null;
  /** Called when an object was made or changed. */
  onEvent: (event: Increase.Event) => void = () => {};

  constructor(books: Books) {
    this.books = books;
  }

  nowMs(): number {
    return Date.now() + this.aheadMs;
  }

  now(): string {
    return new Date(this.nowMs()).toISOString();
  }

  announce(category: Increase.Event['category'], objectId: string): Increase.Event {
    const type = category.slice(0, category.indexOf('.'));
    const event: Increase.Event = {
      id: `sandbox_event_${this.books.events.length.toString().padStart(8, '0')}${randomInt(1e9)}`,
      type: 'event',
      category,
      associated_object_id: objectId,
      associated_object_type: type,
      created_at: this.now(),
    };
    this.books.events.push(event);
    this.onEvent(event);
    return event;
  }

  /**
   * Makes an object once for each key: again, it answers with the object as it is now.
   * @throws BankError if the key belongs to another object or other arguments
   */
  once<Body extends { id: string }>(
    { key, path, body }: { key: string | null; path: string; body: object },
    objects: readonly Body[],
    make: () => Body,
  ): { object: Body; isReplayed: boolean } {
    const text = JSON.stringify(body);
    const known = key === null ? undefined : this.books.keys[key];
    if (known !== undefined && this.nowMs() - known.createdMs < KEY_LIFETIME_MS) {
      const object = objects.find(({ id }) => id === known.id);
      if (object === undefined || known.path !== path || known.body !== text) {
        throw new BankError(409, 'idempotency_key_already_used_error', { resource_id: known.id });
      }
      return { object, isReplayed: true };
    }
    // An error makes nothing, so it leaves the key unused.
    const object = make();
    if (key !== null) this.books.keys[key] = { path, id: object.id, body: text, createdMs: this.nowMs() };
    return { object, isReplayed: false };
  }

  openAccount(body: Increase.AccountCreateParams, key: string | null): Increase.Account {
    const account = makeAccount(body, { key, createdAt: this.now() });
    this.books.accounts.push(account);
    this.books.cents[account.id] = 0;
    this.announce('account.created', account.id);
    return account;
  }

  makeCard(body: Increase.CardCreateParams, key: string | null): Increase.Card {
    this.account(body.account_id);
    const pan = `424242${String(randomInt(1e10)).padStart(10, '0')}`;
    const expirationYear = new Date(this.nowMs()).getUTCFullYear() + 4;
    const card = makeCard(body, { key, createdAt: this.now(), last4: pan.slice(-4), expirationYear });
    this.books.cards.push(card);
    this.books.pans[card.id] = pan;
    this.announce('card.created', card.id);
    return card;
  }

  details(cardId: string): Increase.CardDetails {
    const card = this.card(cardId);
    return {
      type: 'card_details',
      card_id: card.id,
      expiration_month: card.expiration_month,
      expiration_year: card.expiration_year,
      pin: '1234',
      primary_account_number: this.books.pans[cardId] ?? '',
      verification_code: '737',
    };
  }

  /** A canceled card stays canceled. */
  setStatus(cardId: string, status: Increase.Card['status'] | undefined): Increase.Card {
    const card = this.card(cardId);
    if (status === undefined || status === card.status) return card;
    if (card.status === 'canceled') throw INVALID();
    card.status = status;
    this.announce('card.updated', card.id);
    return card;
  }

  transfer(body: Increase.AccountTransferCreateParams, key: string | null): Increase.AccountTransfer {
    this.account(body.account_id);
    this.account(body.destination_account_id);
    const isRefused = body.amount === this.refusedCents;
    if (isRefused || this.availableCents(body.account_id) < body.amount) throw INVALID();
    const transfer: Increase.AccountTransfer = makeTransfer(body, { key, createdAt: this.now() });
    this.books.transfers.push(transfer);
    if (!this.transfersNeedApproval && body.require_approval !== true) this.complete(transfer);
    this.announce('account_transfer.created', transfer.id);
    return transfer;
  }

  approve(transferId: string): Increase.AccountTransfer {
    const transfer = this.pendingTransfer(transferId);
    if (this.availableCents(transfer.account_id) < transfer.amount) throw INVALID();
    transfer.approval = { approved_at: this.now(), approved_by: null };
    this.complete(transfer);
    this.announce('account_transfer.updated', transfer.id);
    return transfer;
  }

  cancel(transferId: string): Increase.AccountTransfer {
    const transfer = this.pendingTransfer(transferId);
    transfer.status = 'canceled';
    transfer.cancellation = { canceled_at: this.now(), canceled_by: null };
    this.announce('account_transfer.updated', transfer.id);
    return transfer;
  }

  private pendingTransfer(transferId: string): Increase.AccountTransfer {
    const transfer = findObject(this.books.transfers, transferId);
    if (transfer.status !== 'pending_approval') throw INVALID();
    return transfer;
  }

  private complete(transfer: Increase.AccountTransfer): void {
    transfer.status = 'complete';
    this.pay(transfer.account_id, -transfer.amount);
    this.pay(transfer.destination_account_id, transfer.amount);
  }

  pay(accountId: string, cents: number): void {
    this.books.cents[accountId] = (this.books.cents[accountId] ?? 0) + cents;
  }

  /** What an account has, less what card authorizations hold on it. */
  availableCents(accountId: string): number {
    const held = this.books.pendingTransactions
      .filter(({ account_id, status }) => account_id === accountId && status === 'pending')
      .reduce((sum, { held_amount }) => sum + held_amount, 0);
    return (this.books.cents[accountId] ?? 0) - held;
  }

  account(accountId: string): Increase.Account {
    return findObject(this.books.accounts, accountId);
  }

  card(cardId: string | undefined): Increase.Card {
    return findObject(this.books.cards, cardId);
  }

  openDecision(...asked: Parameters<typeof makeDecision>): Increase.RealTimeDecision {
    const decision = makeDecision(...asked);
    this.books.decisions.push(decision);
    return decision;
  }

  /** It takes one answer, and none once its time is up. */
  answer(decisionId: string, body: Increase.RealTimeDecisionActionParams): Increase.RealTimeDecision {
    const decision = findObject(this.books.decisions, decisionId);
    const asked = decision.card_authorization;
    const answer = body.card_authorization;
    if (asked === null || answer === undefined) throw new BankError(400, 'invalid_parameters_error');
    if (decision.status !== 'pending') throw INVALID();
    decision.status = 'responded';
    asked.decision = answer.decision;
    asked.approval = answer.decision === 'approve' ? { partial_amount: null } : null;
    asked.decline = answer.decision === 'decline' ? { reason: answer.decline?.reason ?? 'other' } : null;
    return decision;
  }
}

export const emptyBooks = (): Books => ({
  accounts: [],
  cards: [],
  transfers: [],
  payments: [],
  pendingTransactions: [],
  declinedTransactions: [],
  decisions: [],
  events: [],
  subscriptions: [],
  cents: {},
  pans: {},
  keys: {},
});
