import { z } from 'zod';
import { type IdPrefix, isId } from '../../domain/ids.ts';
import type { IssueCardRequest, RevealedCard, StatusChangeRequest, TransferAsked } from '../card-network.ts';

// The messages between the simulated network's server and us. Its transactions have our own shape,
// NetworkTransaction.

const tokenWith = (prefix: IdPrefix) =>
  z.string().refine((value) => isId(prefix, value), `must be a ${prefix} id`);
const NetworkCardId = z.string().regex(/^[\x21-\x7e]{1,100}$/);
const AmountCents = z.int().positive();
const Reason = z.string().regex(/^[a-z_]{1,100}$/);
const ExpMonth = z.int().min(1).max(12);
const ExpYear = z.int().min(2000).max(9999);
const Accepted = z.object({ status: z.literal('accepted') });
const Failure = z.object({ status: z.enum(['declined', 'failed']), reason: Reason });
const Unknown = z.object({ status: z.literal('unknown') });

/** Body of POST /issuances. */
export const IssuanceOrder = z.object({
  token: tokenWith('card'),
  productCode: z.string().regex(/^[\x20-\x7e]{1,200}$/),
  bin: z.string().regex(/^[0-9]{4,12}$/),
  amountCents: AmountCents,
  cardholderName: z.string().nullable(),
}) satisfies z.ZodType<IssueCardRequest>;

const Card = z.object({
  networkCardId: NetworkCardId,
  last4: z.string().regex(/^[0-9]{4}$/),
  expMonth: ExpMonth,
  expYear: ExpYear,
});
const Issued = Card.extend({ status: z.literal('issued') });
const Issuance = z.discriminatedUnion('status', [Issued, Accepted, Failure]);

/**
 * 200 of POST /issuances. It repeats the token, so that the client does not trust an unrelated process on
 * that port.
 */
export const IssuanceResponse = z.object({ token: z.string(), issuance: Issuance });

/**
 * 200 of GET /issuances/{token}. An unknown token is a 200 too, since a 404 could also mean a wrong address.
 */
export const LookUpResponse = z.object({
  token: z.string(),
  issuance: z.discriminatedUnion('status', [
    Issued,
    Accepted.extend({ card: Card.optional() }),
    Failure,
    Unknown,
  ]),
});

/** Where transfers of each direction are asked for, and looked up by their token. */
export const TRANSFER_PATHS = { topup: '/topups', withdrawal: '/withdrawals' } as const;

const transferOrder = (prefix: IdPrefix) =>
  z.object({
    token: tokenWith(prefix),
    networkCardId: NetworkCardId,
    amountCents: AmountCents,
  }) satisfies z.ZodType<Omit<TransferAsked, 'direction'>>;

/** Body of the POST. */
export const TRANSFER_ORDERS = { topup: transferOrder('topup'), withdrawal: transferOrder('wdr') } as const;

const Transfer = z.discriminatedUnion('status', [
  z.object({ status: z.literal('succeeded') }),
  Accepted,
  Failure,
]);

/** 200 of the POST. */
export const TransferResponse = z.object({ token: z.string(), transfer: Transfer });

/** 200 of the GET. */
export const TransferLookUpResponse = z.object({
  token: z.string(),
  transfer: z.discriminatedUnion('status', [...Transfer.options, Unknown]),
});

/** Body of POST /status-changes. */
export const StatusChangeOrder = z.object({
  token: tokenWith('claim'),
  networkCardId: NetworkCardId,
  cardStatus: z.enum(['active', 'frozen', 'blocked']),
}) satisfies z.ZodType<StatusChangeRequest>;

/** 200 of POST /status-changes. */
export const StatusChangeResponse = z.object({
  token: z.string(),
  statusChange: z.discriminatedUnion('status', [
    z.object({ status: z.literal('applied') }),
    z.object({ status: z.literal('refused'), reason: Reason }),
  ]),
});

/** 200 of GET /cards/{networkCardId}/details; 404 if there is no such card. */
export const DetailsResponse = z.object({
  networkCardId: z.string(),
  details: z.object({
    pan: z.string().regex(/^[0-9]{12,19}$/),
    cvv: z.string().regex(/^[0-9]{3,4}$/),
    expMonth: ExpMonth,
    expYear: ExpYear,
  }) satisfies z.ZodType<RevealedCard>,
});

const Listed = z.object({
  token: z.string(),
  networkCardId: NetworkCardId,
  status: z.enum(['active', 'frozen', 'blocked']),
});

/** 200 of GET /cards?since=&after=: a page, oldest first; an empty one is the last. */
export const ListedCards = z.object({ data: z.array(Listed) });

/** 200 of GET /cards/{networkCardId}: the card, or null if there is none. */
export const FoundCard = z.object({ networkCardId: z.string(), card: Listed.nullable() });

/** 200 of GET /movements?since=&after=, in the same way. */
export const ListedMovements = z.object({
  data: z.array(
    z.object({
      token: z.string(),
      kind: z.enum(['issuance', 'topup', 'withdrawal']),
      amountCents: AmountCents,
      status: z.enum(['succeeded', 'accepted', 'failed']),
    }),
  ),
});

export const CALLBACKS_PATH = '/network/callbacks';
export const TRANSACTIONS_PATH = '/network/transactions';
export const AUTHORIZATIONS_PATH = '/network/authorizations';

const PREFIXES = { 'card.issuance': 'card', 'card.topup': 'topup', 'card.withdrawal': 'wdr' } as const;

/** What a callback of each type is about. */
export const CALLBACK_SUBJECTS = {
  'card.issuance': 'card',
  'card.topup': 'topup',
  'card.withdrawal': 'withdrawal',
} as const;

/** Body of a callback: it says that something changed, never what. */
export const NetworkCallback = z
  .object({ token: z.string(), type: z.enum(['card.issuance', 'card.topup', 'card.withdrawal']) })
  .refine(({ token, type }) => isId(PREFIXES[type], token), {
    path: ['token'],
    message: 'must be the id of a card, top-up or withdrawal, as the type says',
  });
export type NetworkCallback = z.infer<typeof NetworkCallback>;
