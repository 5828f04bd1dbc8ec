import type { Increase } from 'increase';
import { makeId } from './objects.ts';

// What a card payment consists of, as objects.ts has the others.

type Element = Increase.CardPayment.Element;
type Authorization = NonNullable<Element['card_authorization']>;

/** A merchant, and what a request on a card has besides its amount. */
export interface CardUse {
  amount: number;
  direction: 'settlement' | 'refund';
  processingCategory: Authorization['processing_category'];
  merchant: {
    merchant_category_code: string;
    merchant_city: string | null;
    merchant_country: string;
    merchant_descriptor: string;
  };
  standInReason: NonNullable<Authorization['network_details']['visa']>['stand_in_processing_reason'];
}

const ADDITIONAL_AMOUNTS = {
  clinic: null,
  dental: null,
  original: null,
  prescription: null,
  surcharge: null,
  total_cumulative: null,
  total_healthcare: null,
  transit: null,
  unknown: null,
  vision: null,
} satisfies Authorization['additional_amounts'];

const NETWORK_IDENTIFIERS = {
  authorization_identification_response: 'ABC123',
  retrieval_reference_number: '785867080153',
  trace_number: '487941',
  transaction_id: '627199945183184',
} satisfies Authorization['network_identifiers'];

const CLEARING_IDENTIFIERS = {
  acquirer_business_id: '69650702',
  acquirer_reference_number: '83163715445437604865089',
  authorization_identification_response: 'ABC123',
  transaction_id: '627199945183184',
} satisfies NonNullable<Element['card_settlement']>['network_identifiers'];

const VERIFICATION = {
  card_verification_code: { result: 'match' },
  cardholder_address: {
    actual_line1: '33 Liberty Street',
    actual_postal_code: '94131',
    provided_line1: '33 Liberty Street',
    provided_postal_code: '94132',
    result: 'postal_code_no_match_address_match',
  },
  cardholder_name: {
    provided_first_name: 'Sam',
    provided_last_name: 'Cardholder',
    provided_middle_name: null,
  },
} satisfies Authorization['verification'];

const networkDetails = (standInReason: CardUse['standInReason']) =>
  ({
    category: 'visa',
    pulse: null,
    visa: {
      electronic_commerce_indicator: 'secure_electronic_commerce',
      point_of_service_entry_mode: 'manual',
      stand_in_processing_reason: standInReason,
      terminal_entry_capability: 'unknown',
    },
  }) satisfies Authorization['network_details'];

/** What authorizations, declines, single messages and decisions have in common. */
export const requested = ({ amount, direction, processingCategory, merchant, standInReason }: CardUse) => ({
  additional_amounts: ADDITIONAL_AMOUNTS,
  digital_wallet_token_id: null,
  direction,
  ...merchant,
  merchant_acceptor_id: '5665270011000168',
  merchant_postal_code: '10045',
  merchant_state: 'NY',
  network_details: networkDetails(standInReason),
  network_identifiers: NETWORK_IDENTIFIERS,
  network_risk_score: 10,
  physical_card_id: null,
  presentment_amount: amount,
  presentment_currency: 'USD',
  processing_category: processingCategory,
  terminal_id: 'RCN5VNXS',
  verification: VERIFICATION,
});

export interface Actioned {
  actioner: Authorization['actioner'];
  decisionId: string | null;
}

export const makeAuthorization = (
  use: CardUse,
  { actioner, decisionId }: Actioned,
  of: { paymentId: string; pendingTransactionId: string | null; expiresAt: string },
) =>
  ({
    ...requested(use),
    id: makeId('card_authorization'),
    type: 'card_authorization',
    actioner,
    amount: use.amount,
    card_payment_id: of.paymentId,
    currency: 'USD',
    expires_at: of.expiresAt,
    healthcare: null,
    pending_transaction_id: of.pendingTransactionId,
    real_time_decision_id: decisionId,
    scheme_fees: [],
  }) satisfies Authorization;

export type DeclineReason = NonNullable<Element['card_decline']>['reason'];

export const makeDecline = (
  use: CardUse,
  { actioner, decisionId }: Actioned,
  of: {
    paymentId: string;
    reason: DeclineReason;
    decidedReason: NonNullable<Element['card_decline']>['real_time_decision_reason'];
    incremented: string | null;
  },
) =>
  ({
    ...requested(use),
    id: makeId('card_decline'),
    actioner,
    amount: use.amount,
    card_payment_id: of.paymentId,
    currency: 'USD',
    declined_transaction_id: makeId('declined_transaction'),
    incremented_card_authorization_id: of.incremented,
    real_time_decision_id: decisionId,
    real_time_decision_reason: of.decidedReason,
    reason: of.reason,
    scheme_fees: [],
  }) satisfies NonNullable<Element['card_decline']>;

export const makeFinancial = (use: CardUse, { actioner, decisionId }: Actioned, paymentId: string) =>
  ({
    ...requested(use),
    id: makeId('card_financial'),
    type: 'card_financial',
    actioner,
    amount: use.amount,
    card_payment_id: paymentId,
    currency: 'USD',
    real_time_decision_id: decisionId,
    scheme_fees: [],
    transaction_id: makeId('transaction'),
  }) satisfies NonNullable<Element['card_financial']>;

export const makeIncrement = (
  amount: number,
  { actioner, decisionId }: Actioned,
  of: Pick<Authorization, 'id' | 'pending_transaction_id'> & { updatedAmount: number },
) =>
  ({
    id: makeId('card_increment'),
    type: 'card_increment',
    actioner,
    additional_amounts: ADDITIONAL_AMOUNTS,
    amount,
    card_authorization_id: of.id,
    currency: 'USD',
    network: 'visa',
    network_identifiers: NETWORK_IDENTIFIERS,
    network_risk_score: 10,
    pending_transaction_id: of.pending_transaction_id,
    presentment_amount: amount,
    presentment_currency: 'USD',
    real_time_decision_id: decisionId,
    scheme_fees: [],
    updated_authorization_amount: of.updatedAmount,
  }) satisfies NonNullable<Element['card_increment']>;

export const makeReversal = (amount: number, updatedAmount: number, of: Authorization) =>
  ({
    id: makeId('card_reversal'),
    type: 'card_reversal',
    card_authorization_id: of.id,
    currency: 'USD',
    merchant_acceptor_id: of.merchant_acceptor_id,
    merchant_category_code: of.merchant_category_code,
    merchant_city: of.merchant_city,
    merchant_country: of.merchant_country,
    merchant_descriptor: of.merchant_descriptor,
    merchant_postal_code: of.merchant_postal_code,
    merchant_state: of.merchant_state,
    network: 'visa',
    network_identifiers: NETWORK_IDENTIFIERS,
    pending_transaction_id: of.pending_transaction_id,
    presentment_currency: 'USD',
    reversal_amount: amount,
    reversal_presentment_amount: amount,
    reversal_reason: 'reversed_by_customer',
    scheme_fees: [],
    terminal_id: of.terminal_id,
    updated_authorization_amount: updatedAmount,
    updated_authorization_presentment_amount: updatedAmount,
  }) satisfies NonNullable<Element['card_reversal']>;

export const makeExpiration = (expiredAmount: number, of: Authorization) =>
  ({
    id: makeId('card_authorization_expiration'),
    type: 'card_authorization_expiration',
    card_authorization_id: of.id,
    currency: 'USD',
    expired_amount: expiredAmount,
    network: 'visa',
  }) satisfies NonNullable<Element['card_authorization_expiration']>;

export const makeFuelConfirmation = (updatedAmount: number, of: Authorization) =>
  ({
    id: makeId('card_fuel_confirmation'),
    type: 'card_fuel_confirmation',
    card_authorization_id: of.id,
    currency: 'USD',
    network: 'visa',
    network_identifiers: NETWORK_IDENTIFIERS,
    pending_transaction_id: of.pending_transaction_id,
    scheme_fees: [],
    updated_authorization_amount: updatedAmount,
  }) satisfies NonNullable<Element['card_fuel_confirmation']>;

/** What settlements and refunds have in common. */
const cleared = (amount: number, { merchant }: CardUse, paymentId: string) => ({
  amount,
  card_payment_id: paymentId,
  cashback: null,
  currency: 'USD' as const,
  interchange: null,
  merchant_acceptor_id: '5665270011000168',
  merchant_category_code: merchant.merchant_category_code,
  merchant_city: merchant.merchant_city ?? '',
  merchant_country: merchant.merchant_country,
  merchant_name: merchant.merchant_descriptor,
  merchant_postal_code: '10045',
  merchant_state: 'NY',
  network_identifiers: CLEARING_IDENTIFIERS,
  presentment_amount: amount,
  presentment_currency: 'USD',
  purchase_details: null,
  scheme_fees: [],
  transaction_id: makeId('transaction'),
});

export const makeSettlement = (
  amount: number,
  use: CardUse,
  of: { paymentId: string; authorizationId: string | null; pendingTransactionId: string | null },
) =>
  ({
    ...cleared(amount, use, of.paymentId),
    id: makeId('card_settlement'),
    type: 'card_settlement',
    card_authorization: of.authorizationId,
    network: 'visa',
    pending_transaction_id: of.pendingTransactionId,
    surcharge: null,
  }) satisfies NonNullable<Element['card_settlement']>;

export const makeRefund = (amount: number, use: CardUse, paymentId: string) =>
  ({
    ...cleared(amount, use, paymentId),
    id: makeId('card_refund'),
    type: 'card_refund',
  }) satisfies NonNullable<Element['card_refund']>;

export const makePendingTransaction = (
  authorization: Authorization,
  of: { id: string; accountId: string; cardId: string; createdAt: string },
) =>
  ({
    id: of.id,
    type: 'pending_transaction',
    account_id: of.accountId,
    amount: -authorization.amount,
    completed_at: null,
    created_at: of.createdAt,
    currency: 'USD',
    description: authorization.merchant_descriptor,
    held_amount: authorization.amount,
    route_id: of.cardId,
    route_type: 'card',
    source: { category: 'card_authorization', card_authorization: authorization },
    status: 'pending',
  }) satisfies Increase.PendingTransaction;

export const makeDeclinedTransaction = (
  decline: ReturnType<typeof makeDecline>,
  of: { accountId: string; cardId: string; createdAt: string },
) =>
  ({
    id: decline.declined_transaction_id,
    type: 'declined_transaction',
    account_id: of.accountId,
    amount: -decline.amount,
    created_at: of.createdAt,
    currency: 'USD',
    description: decline.merchant_descriptor,
    route_id: of.cardId,
    route_type: 'card',
    source: { category: 'card_decline', card_decline: decline },
  }) satisfies Increase.DeclinedTransaction;
