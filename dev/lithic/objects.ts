import { randomInt, randomUUID } from 'node:crypto';
import type Lithic from 'lithic';
import { luhnCheckDigit } from '../../issuers/derived-cards.ts';

// Lithic's objects, whole, as its SDK declares them.

export type Card = Required<Pick<Lithic.Card, 'pan' | 'cvv' | 'memo' | 'exp_month' | 'exp_year'>> &
  Lithic.Card;
export type Transaction = Lithic.Transaction & { events: Lithic.Transaction.Event[] };
export type TransactionEvent = Lithic.Transaction.Event;
export type EventType = TransactionEvent['type'];
export type Result = TransactionEvent['result'];
export type DetailedResult = TransactionEvent['detailed_results'][number];

export interface MerchantAsked {
  descriptor?: string | undefined;
  mcc?: string | undefined;
  city?: string | undefined;
  /** ISO 3166-1 alpha-3. */
  country?: string | undefined;
}

export function makeCard(
  asked: { memo?: string; state?: 'OPEN' | 'PAUSED'; card_program_token?: string },
  now: Date,
): Card {
  const digits = `411111${String(randomInt(1e9)).padStart(9, '0')}`;
  const pan = digits + luhnCheckDigit(digits);
  return {
    token: randomUUID(),
    account_token: 'b68b7424-aa69-4cbc-a946-30d90181b621',
    card_program_token: asked.card_program_token ?? '00000000-0000-0000-1000-000000000000',
    created: now.toISOString(),
    funding: null,
    last_four: pan.slice(-4),
    pin_status: 'NOT_SET',
    spend_limit: 0,
    spend_limit_duration: 'TRANSACTION',
    state: asked.state ?? 'OPEN',
    type: 'VIRTUAL',
    memo: asked.memo ?? '',
    exp_month: '06',
    exp_year: String(now.getUTCFullYear() + 6),
    pan,
    cvv: String(randomInt(1_000)).padStart(3, '0'),
  } satisfies Lithic.Card;
}

/** A card without number and CVV, as lists and ASA requests have it. */
export function withoutSecrets({ pan: _pan, cvv: _cvv, ...card }: Card): Lithic.NonPCICard {
  return card;
}

export function makeTransaction(
  card: Card,
  { descriptor = 'COFFEE SHOP', mcc = '5812', city = 'NEW YORK', country = 'USA' }: MerchantAsked,
  now: Date,
): Transaction {
  // An object of its own for each amount, since they change.
  const usd = () => ({ amount: 0, currency: 'USD' }) as const;
  return {
    token: randomUUID(),
    account_token: card.account_token,
    acquirer_fee: 0,
    acquirer_reference_number: null,
    amount: 0,
    amounts: {
      cardholder: { ...usd(), conversion_rate: '1.00' },
      hold: usd(),
      merchant: usd(),
      settlement: usd(),
    },
    authorization_amount: 0,
    authorization_code: '123456',
    avs: null,
    card_token: card.token,
    cardholder_authentication: null,
    created: now.toISOString(),
    financial_account_token: null,
    merchant: {
      acceptor_id: '333301802529120',
      acquiring_institution_id: '191231',
      city,
      country,
      descriptor,
      mcc,
      state: 'NY',
      phone_number: null,
      postal_code: null,
      street_address: null,
    },
    merchant_amount: 0,
    merchant_authorization_amount: 0,
    merchant_currency: 'USD',
    network: 'VISA',
    network_risk_score: null,
    pos: {
      entry_mode: { card: 'NOT_PRESENT', cardholder: 'NOT_PRESENT', pan: 'ECOMMERCE', pin_entered: false },
      terminal: {
        attended: false,
        card_retention_capable: false,
        on_premise: false,
        operator: 'UNKNOWN',
        partial_approval_capable: false,
        pin_capability: 'UNSPECIFIED',
        type: 'ECOMMERCE',
      },
    },
    result: 'APPROVED',
    service_location: null,
    settled_amount: 0,
    status: 'PENDING',
    tags: {},
    token_info: null,
    updated: now.toISOString(),
    events: [],
  } satisfies Lithic.Transaction;
}

export interface EventAsked {
  type: EventType;
  /** Cents, positive. */
  amount: number;
  polarity?: 'CREDIT' | 'DEBIT';
  result?: Result;
  detailedResult?: DetailedResult;
  /** By default a new one. */
  token?: string;
}

export function makeEvent(asked: EventAsked, now: Date): TransactionEvent {
  const { type, amount, polarity = 'DEBIT', result = 'APPROVED', token = randomUUID() } = asked;
  const signed = polarity === 'CREDIT' ? -amount : amount;
  const movesFunds = /^(CLEARING|FINANCIAL|RETURN)/.test(type);
  const money = { amount: signed, currency: 'USD' } as const;
  return {
    token,
    amount: signed,
    amounts: {
      cardholder: { ...money, conversion_rate: '1.000000' },
      merchant: money,
      settlement: movesFunds ? { ...money, conversion_rate: '1.000000' } : null,
    },
    created: now.toISOString(),
    detailed_results: [asked.detailedResult ?? (result === 'APPROVED' ? 'APPROVED' : 'DECLINED')],
    effective_polarity: polarity,
    network_info: null,
    result,
    rule_results: [],
    type,
  } satisfies Lithic.Transaction.Event;
}

/** The request of Auth Stream Access. @param eventToken null for programs that have none in it */
export function makeAuthorizationRequest(
  transaction: Transaction,
  card: Card,
  asked: { amount: number; status: Lithic.CardAuthorization['status']; eventToken: string | null },
): Lithic.CardAuthorizationApprovalRequestWebhookEvent {
  const { amount, status, eventToken } = asked;
  const money = { amount, currency: 'USD' } as const;
  return {
    event_type: 'card_authorization.approval_request',
    token: transaction.token,
    acquirer_fee: 0,
    amount,
    amounts: {
      cardholder: { ...money, conversion_rate: '1.000000' },
      hold: null,
      merchant: money,
      settlement: null,
    },
    authorization_amount: amount,
    avs: { address: '', address_on_file_match: 'NOT_PRESENT', zipcode: '' },
    card: {
      token: card.token,
      last_four: card.last_four,
      memo: card.memo,
      spend_limit: 0,
      spend_limit_duration: 'TRANSACTION',
      state: card.state,
      type: 'VIRTUAL',
    },
    cardholder_currency: 'USD',
    cash_amount: 0,
    created: transaction.created,
    merchant: transaction.merchant,
    merchant_amount: amount,
    merchant_currency: 'USD',
    name_validation: null,
    service_location: null,
    settled_amount: 0,
    status,
    transaction_initiator: 'CARDHOLDER',
    ...(eventToken !== null && { event_token: eventToken }),
  } satisfies Lithic.CardAuthorizationApprovalRequestWebhookEvent;
}
