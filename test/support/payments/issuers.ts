import type { PaymentMerchant, PaymentSnapshot } from '../../../domain/payment.ts';
import { snapshotPayment } from '../../../issuers/increase/snapshot.ts';
import type { CardPayment } from '../../../issuers/increase/wire.ts';
import { snapshotTransaction } from '../../../issuers/lithic/snapshot.ts';
import type { Transaction } from '../../../issuers/lithic/wire.ts';

// Issuers that know one payment each, write it as they do on the wire, and keep books of their own: what they hold, what has left
// the card and its account, and which requests were declined. Nothing here is the product's but the shape of the wire.

/** What a request was named when it was asked; null if the issuer names none. */
export interface AskedAs {
  id: string | null;
}

export interface Issuer {
  /** Cents that it holds now. */
  holdCents: number;
  /** Cents that have left, less what came back. */
  movedCents: number;
  /** Names a request before it is decided. */
  name(): { named: string; asked: AskedAs };
  /** @param named null if it decides without having asked */
  request(cents: number, isApproved: boolean, named: string | null): void;
  /** A purchase in one message, approved. */
  single(cents: number, named: string | null): void;
  /** Its new total. */
  total(cents: number): void;
  reverse(cents: number): void;
  expire(): void;
  clear(cents: number, isFinal: boolean): void;
  force(cents: number): void;
  refund(cents: number): void;
  /** Takes back a refund; an issuer that can't does nothing. */
  takeBack(cents: number): void;
  /** A clearing in a currency that is not ours, of this many of our cents. @returns the element's id */
  clearInEuros(cents: number): string;
  read(): Read;
}

export interface Read {
  snapshot(): PaymentSnapshot;
  holdCents: number;
  /** The requests that it had asked about, by their names. */
  told: ReadonlySet<string>;
  /** The elements that only a person can read. */
  foreign: readonly string[];
}

const AT = '2026-01-01T00:00:00.000Z';
export const MERCHANT: PaymentMerchant = {
  name: 'SHOP',
  categoryCode: '5812',
  city: 'NEW YORK',
  country: 'US',
};

export class LithicIssuer implements Issuer {
  holdCents = 0;
  movedCents = 0;
  #isAuthorized = false;
  #next = 0;
  readonly #told: string[] = [];
  readonly #foreign: string[] = [];
  readonly #events: Transaction['events'] = [];
  readonly #namesRequests: boolean;

  constructor(namesRequests: boolean) {
    this.#namesRequests = namesRequests;
  }

  name() {
    const named = this.#token();
    return { named, asked: { id: this.#namesRequests ? named : null } };
  }

  request(cents: number, isApproved: boolean, named: string | null): void {
    this.#add('AUTHORIZATION', cents, { isApproved, token: named });
    if (named !== null) this.#told.push(named);
    if (!isApproved) return;
    this.holdCents += cents;
    this.#isAuthorized = true;
  }

  single(cents: number, named: string | null): void {
    this.#add('FINANCIAL_AUTHORIZATION', cents, { token: named });
    if (named !== null) this.#told.push(named);
    this.movedCents += cents;
  }

  total(cents: number): void {
    if (!this.#isAuthorized) return;
    this.#add('AUTHORIZATION_ADVICE', cents);
    this.holdCents = cents;
  }

  reverse(cents: number): void {
    const back = Math.min(cents, this.holdCents);
    this.#add('AUTHORIZATION_REVERSAL', back);
    this.holdCents -= back;
  }

  expire(): void {
    this.#add('AUTHORIZATION_EXPIRY', this.holdCents);
    this.holdCents = 0;
  }

  clear(cents: number, isFinal: boolean): void {
    this.#add('CLEARING', cents);
    this.movedCents += cents;
    this.holdCents = isFinal ? 0 : Math.max(0, this.holdCents - cents);
  }

  force(cents: number): void {
    this.#add('CLEARING', cents);
    this.movedCents += cents;
    this.holdCents = Math.max(0, this.holdCents - cents);
  }

  refund(cents: number): void {
    this.#add('RETURN', cents, { isCredit: true });
    this.movedCents -= cents;
  }

  takeBack(cents: number): void {
    this.#add('RETURN_REVERSAL', cents);
    this.movedCents += cents;
  }

  clearInEuros(cents: number): string {
    const token = this.#add('CLEARING', cents - 1, { currency: 'EUR' });
    this.holdCents = Math.max(0, this.holdCents - cents);
    this.#foreign.push(token);
    return token;
  }

  read(): Read {
    const events = [...this.#events];
    const { holdCents } = this;
    const snapshot = () =>
      snapshotTransaction({
        token: 'T',
        card_token: 'C',
        created: new Date(0).toISOString(),
        updated: new Date(1_000 * events.length).toISOString(),
        merchant: { descriptor: 'SHOP' },
        amounts: { hold: { amount: holdCents, currency: 'USD' } },
        events,
      });
    return { snapshot, holdCents, told: new Set(this.#told), foreign: [...this.#foreign] };
  }

  #token(): string {
    this.#next += 1;
    return `e${this.#next}`;
  }

  #add(
    type: string,
    amount: number,
    more: { isApproved?: boolean; isCredit?: boolean; token?: string | null; currency?: string } = {},
  ): string {
    const { isApproved = true, isCredit = false, token = null, currency = 'USD' } = more;
    const named = token ?? this.#token();
    const money = { amount: isCredit ? -amount : amount, currency };
    this.#events.push({
      token: named,
      type,
      result: isApproved ? 'APPROVED' : 'DECLINED',
      effective_polarity: isCredit ? 'CREDIT' : 'DEBIT',
      amounts: { cardholder: money },
      created: AT,
    });
    return named;
  }
}

/** A read of Increase's, in two parts: what it holds, then the payment. */
export class IncreaseIssuer implements Issuer {
  holdCents = 0;
  movedCents = 0;
  #next = 0;
  readonly #told: string[] = [];
  readonly #foreign: string[] = [];
  #authorizations = 0;
  expiresAt: string;
  readonly #elements: CardPayment['elements'] = [];
  #pending = new Map<string, { status: 'pending' | 'complete'; held_amount: number }>();

  constructor(expiresAt = '2026-02-01T00:00:00.000Z') {
    this.expiresAt = expiresAt;
  }

  name() {
    const named = this.#id('decision');
    return { named, asked: { id: named } };
  }

  request(cents: number, isApproved: boolean, named: string | null): void {
    const decided = { amount: cents, currency: 'USD', real_time_decision_id: named };
    if (named !== null) this.#told.push(named);
    if (!isApproved) {
      this.#add('card_decline', { ...decided, direction: 'settlement', ...WHERE });
      return;
    }
    const pendingId = 'pending1';
    const isFirst = this.#authorizations === 0;
    this.#authorizations += 1;
    const more = { ...decided, pending_transaction_id: pendingId };
    if (isFirst) {
      this.#add('card_authorization', {
        ...more,
        direction: 'settlement',
        expires_at: this.expiresAt,
        ...WHERE,
      });
    } else this.#add('card_increment', { ...more, card_authorization_id: 'a' });
    this.#hold(this.holdCents + cents, false);
  }

  single(cents: number, named: string | null): void {
    const decided = { amount: cents, currency: 'USD', real_time_decision_id: named };
    if (named !== null) this.#told.push(named);
    this.#add('card_financial', { ...decided, direction: 'settlement', ...WHERE });
    this.movedCents += cents;
  }

  total(cents: number): void {
    if (this.#authorizations === 0) return;
    this.#add('card_fuel_confirmation', {
      currency: 'USD',
      card_authorization_id: 'a',
      pending_transaction_id: 'pending1',
      updated_authorization_amount: cents,
    });
    this.#hold(cents, false);
  }

  reverse(cents: number): void {
    if (this.#authorizations === 0) return;
    const back = Math.min(cents, this.holdCents);
    const of = { card_authorization_id: 'a', pending_transaction_id: 'pending1' };
    this.#add('card_reversal', { currency: 'USD', reversal_amount: back, ...of });
    this.#hold(this.holdCents - back, this.holdCents === back);
  }

  expire(): void {
    if (this.#authorizations === 0) return;
    this.#add('card_authorization_expiration', { currency: 'USD', card_authorization_id: 'a' });
    this.#hold(0, true);
  }

  clear(cents: number, isFinal: boolean): void {
    if (this.#authorizations === 0) {
      this.force(cents);
      return;
    }
    this.#settle(cents, 'USD', 'a');
    this.movedCents += cents;
    this.#hold(isFinal ? 0 : Math.max(0, this.holdCents - cents), isFinal);
  }

  force(cents: number): void {
    this.#settle(cents, 'USD', null);
    this.movedCents += cents;
  }

  refund(cents: number): void {
    this.#add('card_refund', { amount: cents, currency: 'USD', merchant_name: 'SHOP', ...WHERE });
    this.movedCents -= cents;
  }

  takeBack(): void {}

  clearInEuros(cents: number): string {
    const id = this.#settle(cents - 1, 'EUR', this.#authorizations === 0 ? null : 'a');
    if (this.#authorizations > 0) this.#hold(Math.max(0, this.holdCents - cents), false);
    this.#foreign.push(id);
    return id;
  }

  read(): Read {
    const elements = [...this.#elements];
    const pending = this.#pending;
    const snapshot = () =>
      snapshotPayment({ id: 'P', card_id: 'C', created_at: new Date(0).toISOString(), elements }, pending);
    return { snapshot, holdCents: this.holdCents, told: new Set(this.#told), foreign: [...this.#foreign] };
  }

  #settle(amount: number, currency: string, authorization: string | null): string {
    const of = { card_authorization: authorization, pending_transaction_id: authorization && 'pending1' };
    return this.#add('card_settlement', { amount, currency, merchant_name: 'SHOP', ...of, ...WHERE });
  }

  #hold(cents: number, isComplete: boolean): void {
    this.holdCents = cents;
    const status = isComplete ? 'complete' : 'pending';
    this.#pending = new Map([['pending1', { status, held_amount: cents }]]);
  }

  #id(what: string): string {
    this.#next += 1;
    return `${what}${this.#next}`;
  }

  #add(category: string, told: object): string {
    const id = this.#id('element');
    const all = { merchant_descriptor: 'SHOP', id, ...told };
    this.#elements.push({ category, created_at: AT, [category]: all });
    return id;
  }
}

const WHERE = { merchant_category_code: '5812', merchant_city: 'NEW YORK', merchant_country: 'US' };

/** A snapshot as one of many payments: elements have ids of their own at a network. */
export function named(paymentId: string, snapshot: PaymentSnapshot): PaymentSnapshot {
  const own = (id: string) => `${paymentId}/${id}`;
  return {
    ...snapshot,
    paymentId,
    requests: snapshot.requests.map((one) => ({ ...one, id: own(one.id) })),
    unreadable: snapshot.unreadable.map((one) => ({ ...one, id: own(one.id) })),
    movements: snapshot.movements.map((one) => ({
      ...one,
      id: own(one.id),
      refunds: one.refunds === null ? null : own(one.refunds),
    })),
  };
}
