import { z } from 'zod';
import { NetworkId, printable } from '../../domain/fields.ts';

// What we read of Increase's objects. Unknown fields are ignored, because Increase adds some; PANs, PINs and
// names of cardholders are in none of these but CardDetails.

/** Where Increase's event subscriptions post. */
export const EVENTS_PATH = '/network/increase/events';
/** The events that say something to us, and that we are lost without. */
export const NEEDED_EVENTS: readonly string[] = [
  'card_payment.created',
  'card_payment.updated',
  'account_transfer.created',
  'account_transfer.updated',
];
/** The real-time decisions that we make; they need a subscription of their own. */
export const DECISION_EVENT = 'real_time_decision.card_authorization_requested';

const Time = z.iso.datetime({ offset: true });
const Key = z.string().max(200).nullable();

/** What is read of an object that is not as below. A time that can't be read is before all others. */
export const Named = z.object({
  id: NetworkId,
  idempotency_key: Key.catch(null),
  created_at: Time.catch('1970-01-01T00:00:00Z'),
});
export const NamedTransfer = Named.extend({
  account_id: NetworkId.nullable().catch(null),
  destination_account_id: NetworkId.nullable().catch(null),
});

export const Account = z.object({ id: NetworkId, idempotency_key: Key, closed_at: Time.nullable() });

export const Card = z.object({
  id: NetworkId,
  account_id: NetworkId,
  status: z.enum(['active', 'disabled', 'canceled']),
  last4: z.string().regex(/^[0-9]{4}$/),
  expiration_month: z.int().min(1).max(12),
  expiration_year: z.int().min(2000).max(9999),
  idempotency_key: Key,
  created_at: Time,
});
export type Card = z.infer<typeof Card>;

export const AccountTransfer = z.object({
  id: NetworkId,
  account_id: NetworkId,
  destination_account_id: NetworkId,
  amount: z.int(),
  status: z.enum(['pending_approval', 'canceled', 'complete']),
  idempotency_key: Key,
  created_at: Time,
});
export type AccountTransfer = z.infer<typeof AccountTransfer>;

/** The PIN is left out. */
export const CardDetails = z.object({
  card_id: NetworkId,
  primary_account_number: z.string().regex(/^[0-9]{12,19}$/),
  verification_code: z.string().regex(/^[0-9]{3,4}$/),
  expiration_month: z.int().min(1).max(12),
  expiration_year: z.int().min(2000).max(9999),
});

/** What is held for an authorization. */
export const HeldTransaction = z.object({
  id: NetworkId,
  status: z.enum(['pending', 'complete']),
  held_amount: z.int().min(0),
});
export type HeldTransaction = z.infer<typeof HeldTransaction>;

export const EventSubscription = z.object({
  status: z.string(),
  url: z.string(),
  /** Null: all of them. */
  selected_event_categories: z.array(z.object({ event_category: z.string().nullable() })).nullable(),
});

/** An error. Its title and detail may quote what we sent, so they are never read. */
export const Problem = z.object({ type: z.string().regex(/^[a-z0-9_]{1,60}$/) });

/** What Increase posts. The object has to be fetched. */
export const Event = z.object({
  id: NetworkId,
  category: z.string().max(200),
  associated_object_id: NetworkId,
  associated_object_type: z.string().max(200),
});
export type Event = z.infer<typeof Event>;

const Cents = z.int();
const Direction = z.enum(['settlement', 'refund']);
const Text = z.string().nullable();
const Merchant = {
  merchant_category_code: Text,
  merchant_city: Text,
  merchant_country: Text,
};

const CardAuthorizationAsked = z.object({
  card_id: NetworkId,
  decision: z.enum(['approve', 'decline']).nullable(),
  direction: Direction,
  processing_category: z.string(),
  settlement_amount: Cents,
  settlement_currency: z.string(),
  upcoming_card_payment_id: NetworkId,
  request_details: z.object({
    incremental_authorization: z.object({ card_payment_id: NetworkId }).nullable(),
  }),
  merchant_descriptor: Text,
  ...Merchant,
});
export type CardAuthorizationAsked = z.infer<typeof CardAuthorizationAsked>;

export const RealTimeDecision = z.object({
  id: NetworkId,
  status: z.enum(['pending', 'responded', 'timed_out']),
  card_authorization: CardAuthorizationAsked.nullable(),
});
export type RealTimeDecision = z.infer<typeof RealTimeDecision>;

const Decided = { id: NetworkId, currency: z.string(), real_time_decision_id: NetworkId.nullable() };
const OfAuthorization = { id: NetworkId, currency: z.string(), card_authorization_id: NetworkId };

const CardAuthorization = z.object({
  ...Decided,
  amount: Cents,
  direction: Direction,
  expires_at: Time,
  merchant_descriptor: Text,
  ...Merchant,
});
const CardDecline = z.object({
  ...Decided,
  amount: Cents,
  direction: Direction,
  merchant_descriptor: Text,
  ...Merchant,
});
const CardIncrement = z.object({ ...Decided, amount: Cents, card_authorization_id: NetworkId });
const CardReversal = z.object({ ...OfAuthorization, reversal_amount: Cents });
const CardExpiration = z.object(OfAuthorization);
const CardFuelConfirmation = z.object({ ...OfAuthorization, updated_authorization_amount: Cents });
const CardSettlement = z.object({
  id: NetworkId,
  amount: Cents,
  currency: z.string(),
  card_authorization: NetworkId.nullable(),
  pending_transaction_id: NetworkId.nullable(),
  merchant_name: Text,
  ...Merchant,
});
const CardRefund = z.object({
  id: NetworkId,
  amount: Cents,
  currency: z.string(),
  merchant_name: Text,
  ...Merchant,
});
const CardFinancial = z.object({
  ...Decided,
  amount: Cents,
  direction: Direction,
  merchant_descriptor: Text,
  ...Merchant,
});

const Pending = { pending_transaction_id: NetworkId.nullable() };

/**
 * What each category of element says about money. An element that is none of these is read as {@link
 * AnyElement}.
 */
export const ELEMENTS = {
  card_authorization: CardAuthorization.extend(Pending),
  card_increment: CardIncrement.extend(Pending),
  card_decline: CardDecline,
  card_reversal: CardReversal.extend(Pending),
  card_authorization_expiration: CardExpiration,
  card_fuel_confirmation: CardFuelConfirmation.extend(Pending),
  card_settlement: CardSettlement,
  card_refund: CardRefund,
  card_financial: CardFinancial,
} as const;
export type ElementCategory = keyof typeof ELEMENTS;

export const AnyElement = z.object({
  id: NetworkId.nullish().catch(null),
  amount: Cents.nullish().catch(null),
  currency: z.string().max(20).transform(printable).nullish().catch(null),
});

/**
 * A card payment. The category of an element names the field that has it. They are read one by one, so that
 * one that we don't understand leaves the others readable.
 */
export const CardPayment = z.object({
  id: NetworkId,
  card_id: NetworkId,
  created_at: Time,
  elements: z.array(z.looseObject({ category: z.string().max(100), created_at: Time })),
});
export type CardPayment = z.infer<typeof CardPayment>;
