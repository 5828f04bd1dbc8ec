import type { Increase } from 'increase';
import { type Bank, BankError, findObject } from './bank.ts';
import { makeId } from './objects.ts';
import {
  type Actioned,
  type CardUse,
  type DeclineReason,
  makeAuthorization,
  makeDecline,
  makeDeclinedTransaction,
  makeExpiration,
  makeFinancial,
  makeFuelConfirmation,
  makeIncrement,
  makePendingTransaction,
  makeRefund,
  makeReversal,
  makeSettlement,
} from './payment-objects.ts';

type Element = Increase.CardPayment.Element;

const AUTHORIZATION_MS = 7 * 24 * 3_600_000;

/** What cardholders and merchants do: the sandbox's /simulations, and what it can't simulate. */
export class Simulations {
  readonly #bank: Bank;
  /** Asks whoever has subscribed to real-time decisions. @returns false if nobody has */
  askForDecision: (decision: Increase.RealTimeDecision) => boolean = () => false;
  /** How long it waits for a real-time decision. Increase waits 2 to 4 s. */
  decisionMs = 3_000;
  /** The issuer declines for this reason after it has asked us, whatever we said. */
  declinesAfterAsking: DeclineReason | null = null;

  constructor(bank: Bank) {
    this.#bank = bank;
  }

  /** A merchant asks for money. */
  async authorize(
    params: Increase.Simulations.CardAuthorizationCreateParams,
  ): Promise<Increase.Simulations.CardAuthorizationCreateResponse> {
    const bank = this.#bank;
    const card = bank.card(params.card_id);
    const use = toUse(params);
    const paymentId = makeId('card_payment');
    const asked = { accountId: card.account_id, cardId: card.id, paymentId, incremented: null };
    const verdict = await this.#decide(use, asked, params.decline_reason ?? null);
    const payment = this.#open(paymentId, card);
    if (verdict.reason !== null) {
      const decline = makeDecline(use, verdict, {
        paymentId,
        reason: verdict.reason,
        decidedReason: verdict.decidedReason,
        incremented: null,
      });
      const declined = makeDeclinedTransaction(decline, { ...asked, createdAt: bank.now() });
      bank.books.declinedTransactions.push(declined);
      this.#add(payment, { category: 'card_decline', card_decline: decline });
      return {
        type: 'inbound_card_authorization_simulation_result',
        declined_transaction: declined,
        pending_transaction: null,
      };
    }
    const holds = use.direction === 'settlement' && use.amount > 0;
    const authorization = makeAuthorization(use, verdict, {
      paymentId,
      pendingTransactionId: holds ? makeId('pending_transaction') : null,
      expiresAt: new Date(bank.nowMs() + AUTHORIZATION_MS).toISOString(),
    });
    const pending = holds
      ? makePendingTransaction(authorization, {
          ...asked,
          id: authorization.pending_transaction_id ?? '',
          createdAt: bank.now(),
        })
      : null;
    if (pending !== null) bank.books.pendingTransactions.push(pending);
    this.#add(payment, { category: 'card_authorization', card_authorization: authorization });
    return {
      type: 'inbound_card_authorization_simulation_result',
      declined_transaction: null,
      pending_transaction: pending,
    };
  }

  async increment(params: Increase.Simulations.CardIncrementCreateParams): Promise<Increase.CardPayment> {
    const { payment, authorization, use, pending } = this.#authorized(params.card_payment_id);
    const more = { ...use, amount: params.amount };
    const asked = { accountId: payment.account_id, cardId: payment.card_id, paymentId: payment.id };
    const verdict = await this.#decide(more, { ...asked, incremented: authorization.id }, null);
    if (verdict.reason === null) {
      if (pending !== undefined) pending.held_amount += params.amount;
      const updatedAmount = pending?.held_amount ?? params.amount;
      const increment = makeIncrement(params.amount, verdict, { ...authorization, updatedAmount });
      return this.#add(payment, { category: 'card_increment', card_increment: increment });
    }
    const decline = makeDecline(more, verdict, {
      paymentId: payment.id,
      reason: verdict.reason,
      decidedReason: verdict.decidedReason,
      incremented: authorization.id,
    });
    return this.#add(payment, { category: 'card_decline', card_decline: decline });
  }

  reverse(params: Increase.Simulations.CardReversalCreateParams): Increase.CardPayment {
    const { payment, authorization, pending } = this.#authorized(params.card_payment_id);
    const held = pending?.held_amount ?? 0;
    const amount = params.amount ?? held;
    if (pending !== undefined) this.#hold(pending, held - amount);
    const reversal = makeReversal(amount, held - amount, authorization);
    return this.#add(payment, { category: 'card_reversal', card_reversal: reversal });
  }

  expire(params: Increase.Simulations.CardAuthorizationExpirationCreateParams): Increase.CardPayment {
    const { payment, authorization, pending } = this.#authorized(params.card_payment_id);
    const expiration = makeExpiration(pending?.held_amount ?? 0, authorization);
    if (pending !== undefined) this.#hold(pending, 0);
    return this.#add(payment, {
      category: 'card_authorization_expiration',
      card_authorization_expiration: expiration,
    });
  }

  confirmFuel(params: Increase.Simulations.CardFuelConfirmationCreateParams): Increase.CardPayment {
    const { payment, authorization, pending } = this.#authorized(params.card_payment_id);
    if (pending !== undefined) this.#hold(pending, params.amount);
    const confirmation = makeFuelConfirmation(params.amount, authorization);
    return this.#add(payment, { category: 'card_fuel_confirmation', card_fuel_confirmation: confirmation });
  }

  /**
   * A merchant takes its money, of an authorization or without one.
   * @param isPartial whether more settlements of the authorization follow
   */
  settle(
    params: Increase.Simulations.CardSettlementCreateParams,
    isPartial = false,
  ): NonNullable<Element['card_settlement']> {
    const { books } = this.#bank;
    const card = this.#bank.card(params.card_id);
    const pending = params.pending_transaction_id
      ? findObject(books.pendingTransactions, params.pending_transaction_id)
      : undefined;
    const authorization = pending?.source.card_authorization;
    const known = authorization && books.payments.find(({ id }) => id === authorization.card_payment_id);
    const payment = known ?? this.#open(makeId('card_payment'), card);
    const amount = params.amount ?? pending?.held_amount ?? 0;
    const settlement = makeSettlement(amount, toUse({ amount, card_id: card.id }), {
      paymentId: payment.id,
      authorizationId: authorization?.id ?? null,
      pendingTransactionId: pending?.id ?? null,
    });
    if (pending !== undefined)
      this.#hold(pending, isPartial ? Math.max(pending.held_amount - amount, 0) : 0, isPartial);
    this.#bank.pay(card.account_id, -amount);
    this.#add(payment, { category: 'card_settlement', card_settlement: settlement });
    return settlement;
  }

  /** A refund of what a settlement took. */
  refund(settlement: NonNullable<Element['card_settlement']>, amount: number): Increase.CardPayment {
    const payment = findObject(this.#bank.books.payments, settlement.card_payment_id);
    const refund = makeRefund(amount, toUse({ amount, card_id: payment.card_id }), payment.id);
    this.#bank.pay(payment.account_id, amount);
    return this.#add(payment, { category: 'card_refund', card_refund: refund });
  }

  /** A purchase in one message, which nobody decides. */
  single(cardId: string, amount: number): Increase.CardPayment {
    const card = this.#bank.card(cardId);
    const paymentId = makeId('card_payment');
    this.#bank.pay(card.account_id, -amount);
    const verdict = { actioner: 'network' as const, decisionId: null };
    const financial = makeFinancial(toUse({ amount, card_id: cardId }), verdict, paymentId);
    return this.#add(this.#open(paymentId, card), { category: 'card_financial', card_financial: financial });
  }

  /** @returns why it is declined, null if it is approved, and by whom */
  async #decide(
    use: CardUse,
    asked: { accountId: string; cardId: string; paymentId: string; incremented: string | null },
    reason: DeclineReason | null,
  ): Promise<
    Actioned & {
      reason: DeclineReason | null;
      decidedReason: NonNullable<Element['card_decline']>['real_time_decision_reason'];
    }
  > {
    const bank = this.#bank;
    const alone = { actioner: 'increase' as const, decisionId: null, decidedReason: null };
    if (use.standInReason !== null) return { ...alone, actioner: 'network', reason };
    const { status } = bank.card(asked.cardId);
    if (reason !== null) return { ...alone, reason };
    if (status === 'canceled') return { ...alone, reason: 'card_canceled' };
    if (status === 'disabled') return { ...alone, reason: 'card_not_active' };
    const lacks = use.direction === 'settlement' && bank.availableCents(asked.accountId) < use.amount;
    if (lacks) return { ...alone, reason: 'insufficient_funds' };
    const decision = bank.openDecision(use, {
      ...asked,
      createdAt: bank.now(),
      timeoutAt: new Date(bank.nowMs() + this.decisionMs).toISOString(),
    });
    if (!this.askForDecision(decision)) {
      decision.status = 'timed_out';
      return { ...alone, reason: null };
    }
    const giveUpAt = Date.now() + this.decisionMs;
    while (decision.status === 'pending' && Date.now() < giveUpAt) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const answered = { actioner: 'user' as const, decisionId: decision.id };
    if (decision.status === 'pending') {
      decision.status = 'timed_out';
      return { ...answered, reason: 'webhook_timed_out', decidedReason: null };
    }
    const { decision: said, decline } = decision.card_authorization ?? {};
    if (said === 'approve') return { ...answered, reason: this.declinesAfterAsking, decidedReason: null };
    return { ...answered, reason: 'webhook_declined', decidedReason: decline?.reason ?? null };
  }

  #open(id: string, card: Increase.Card): Increase.CardPayment {
    const payment: Increase.CardPayment = {
      id,
      type: 'card_payment',
      account_id: card.account_id,
      card_id: card.id,
      created_at: this.#bank.now(),
      digital_wallet_token_id: null,
      elements: [],
      physical_card_id: null,
      state: {
        authorized_amount: 0,
        fuel_confirmed_amount: 0,
        incremented_amount: 0,
        refund_authorized_amount: 0,
        refunded_amount: 0,
        reversed_amount: 0,
        settled_amount: 0,
      },
    };
    this.#bank.books.payments.push(payment);
    return payment;
  }

  #add(payment: Increase.CardPayment, element: Omit<Element, 'created_at'>): Increase.CardPayment {
    payment.elements.push({ ...element, created_at: this.#bank.now() });
    const isNew = payment.elements.length === 1;
    this.#bank.announce(isNew ? 'card_payment.created' : 'card_payment.updated', payment.id);
    return payment;
  }

  #hold(pending: Increase.PendingTransaction, cents: number, staysOpen = false): void {
    pending.held_amount = cents;
    if (cents > 0 || staysOpen) return;
    pending.status = 'complete';
    pending.completed_at = this.#bank.now();
  }

  #authorized(paymentId: string) {
    const payment = findObject(this.#bank.books.payments, paymentId);
    const authorization = payment.elements.find((it) => it.card_authorization != null)?.card_authorization;
    if (authorization == null) throw new BankError(409, 'invalid_operation_error');
    const pending = this.#bank.books.pendingTransactions.find(
      ({ id }) => id === authorization.pending_transaction_id,
    );
    const use: CardUse = {
      amount: authorization.amount,
      direction: authorization.direction,
      processingCategory: authorization.processing_category,
      merchant: {
        merchant_category_code: authorization.merchant_category_code,
        merchant_city: authorization.merchant_city,
        merchant_country: authorization.merchant_country,
        merchant_descriptor: authorization.merchant_descriptor,
      },
      standInReason: null,
    };
    return { payment, authorization, pending, use };
  }
}

function toUse(params: Increase.Simulations.CardAuthorizationCreateParams): CardUse {
  const category = params.processing_category?.category ?? 'purchase';
  return {
    amount: params.amount,
    direction: category === 'refund' ? 'refund' : 'settlement',
    processingCategory: category,
    merchant: {
      merchant_category_code: params.merchant_category_code ?? '5734',
      merchant_city: params.merchant_city ?? 'New York',
      merchant_country: params.merchant_country ?? 'US',
      merchant_descriptor: params.merchant_descriptor ?? 'AMAZON.COM',
    },
    standInReason: params.network_details?.visa.stand_in_processing_reason ?? null,
  };
}
