import { z } from 'zod';
import { NetworkId, printable } from '../../domain/fields.ts';

// What we read of Lithic's answers and posts. Fields that we don't name are dropped here: the answers about a
// card have its number and its CVV, and only a reveal may read those.

export const EVENTS_PATH = '/network/lithic/events';
/** The event that says what became of a card's transaction. */
export const TRANSACTION_EVENT = 'card_transaction.updated';
export const AUTHORIZATIONS_PATH = '/network/lithic/authorizations';

/** What is read of an object that is not as below. A time that can't be read is before all others. */
export const Named = z.object({
  token: NetworkId,
  memo: z.string().nullish().catch(null),
  created: z.iso.datetime({ offset: true }).catch('1970-01-01T00:00:00Z'),
});

const State = z.enum(['OPEN', 'PAUSED', 'CLOSED', 'PENDING_ACTIVATION', 'PENDING_FULFILLMENT']);

/** A card in a list, or after a change. */
export const CardState = z.object({
  token: NetworkId,
  state: State,
  memo: z.string().nullish(),
  created: z.iso.datetime({ offset: true }),
});
export type CardState = z.infer<typeof CardState>;

export const Card = z.object({
  token: NetworkId,
  memo: z.string().nullish(),
  last_four: z.string().regex(/^[0-9]{4}$/),
  exp_month: z.string().regex(/^(0?[1-9]|1[0-2])$/),
  exp_year: z.string().regex(/^2[0-9]{3}$/),
});
export type Card = z.infer<typeof Card>;

/** For reveals only: the result goes to the partner and nowhere else. */
export const CardDetails = Card.extend({
  pan: z.string().regex(/^[0-9]{12,19}$/),
  cvv: z.string().regex(/^[0-9]{3,4}$/),
});

const Money = z.object({ amount: z.int(), currency: z.string().max(20).transform(printable) });
/** A null settlement is an event or a request that moves no funds yet. */
const Amounts = z.object({ cardholder: Money, settlement: Money.nullish() });

const Merchant = z.object({
  descriptor: z.string().nullish(),
  mcc: z.string().nullish(),
  city: z.string().nullish(),
  country: z.string().nullish(),
});
export type Merchant = z.infer<typeof Merchant>;

const When = z.iso.datetime({ offset: true });

const TransactionEvent = z.object({
  token: NetworkId,
  type: z.string().max(100).transform(printable),
  result: z.string().max(100),
  effective_polarity: z.enum(['CREDIT', 'DEBIT']),
  amounts: Amounts,
  created: When,
});

/**
 * A transaction with everything that happened to it so far, in order. A post without it is only a reason to
 * read it.
 */
export const Transaction = z.object({
  token: NetworkId,
  card_token: NetworkId,
  created: When,
  updated: When,
  merchant: Merchant,
  amounts: z.object({ hold: Money }),
  events: z.array(TransactionEvent),
});
export type Transaction = z.infer<typeof Transaction>;

/** A post to {@link EVENTS_PATH}. `card_transaction.updated` has the whole transaction beside its type. */
export const Posted = z.object({ event_type: z.string() });

/** What is read of a transaction that is not whole: it is fetched later. */
export const TransactionName = z.object({ token: NetworkId });

/** A post to {@link AUTHORIZATIONS_PATH}: Lithic asks whether a card pays. */
export const AuthorizationAsked = z.object({
  token: NetworkId,
  /** Only some programs have it. */
  event_token: NetworkId.nullish(),
  status: z.string(),
  amounts: Amounts,
  card: z.object({ token: NetworkId }),
  merchant: Merchant,
});
export type AuthorizationAsked = z.infer<typeof AuthorizationAsked>;

/**
 * Cents and currency of an event or a request: the sign says nothing, since a credit is negative in some and
 * not in others.
 */
export function moneyOf({ settlement, cardholder }: z.infer<typeof Amounts>): {
  amountCents: number;
  currency: string;
} {
  const { amount, currency } = settlement ?? cardholder;
  return { amountCents: Math.abs(amount), currency };
}

export const Page = <Item>(item: z.ZodType<Item>) => z.object({ data: z.array(item), has_more: z.boolean() });

/** The answer of GET /v1/responder_endpoints. */
export const ResponderEndpoint = z.object({
  enrolled: z.boolean().default(false),
  url: z.string().nullish(),
});

/** Of GET /v1/event_subscriptions. Without types it is for all of them. */
export const EventSubscription = z.object({
  token: NetworkId,
  disabled: z.boolean(),
  url: z.string(),
  event_types: z.array(z.string()).nullish(),
});

/** A refusal. Its message may repeat what we sent, so we don't read it. */
export const Problem = z.object({ debugging_request_id: z.uuid().nullish().catch(null) });
