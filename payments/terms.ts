import { sql } from 'kysely';
import { heldClock } from '../accounts/clock.ts';
import { appliedControls, type ControlsColumns } from '../cards/applied-controls.ts';
import type { CardRow } from '../cards/resource.ts';
import type { AccountClock } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import { feePlanOf } from '../domain/fees.ts';
import { isId } from '../domain/ids.ts';
import type { AppliedControls } from '../domain/spending-controls.ts';
import { CARD_COLUMNS, of } from '../platform/db/columns.ts';
import { type Transactor, writeStatement } from '../platform/db/sql.ts';
import type { FoundClaim, KeyedRequest } from '../requests/claim.ts';
import type { OpenCommand } from '../requests/command-context.ts';
import { type KeyedResponse, readReplay } from '../requests/respond-once.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import type { PaymentRow, PaymentTerms } from './booking-rows.ts';
import type { HandMade } from './rules.ts';
import type { MessageAnswer } from './tables.ts';

/** What a request of a payment is decided on. */
export interface RequestTerms extends PaymentTerms {
  /** What restricts the card. Spending limits are in it only if a request is to be decided. */
  controls: AppliedControls;
  /** When the terms were asked for, before the wait for the card's lock, in real time. */
  askedAt: Date;
}

/** What is read of a payment, its card and its account. */
export interface TermsRead {
  card_cents: string;
  card_held_cents: string;
  prepaid_cents: string;
  fee_plan: unknown;
  payment: PaymentRow | null;
  authorization: AuthorizationRow | null;
  /** By the network's id of an element; null if the payment has none that is unreadable. */
  hand_made: Record<string, HandMade> | null;
}

/** What a payment is booked on, as it was read. */
export const toTerms = (card: CardRow, clock: AccountClock, read: TermsRead): PaymentTerms => ({
  card,
  balance: { balanceCents: Number(read.card_cents), heldCents: Number(read.card_held_cents) },
  feePlan: feePlanOf(read.fee_plan),
  prepaidCents: Number(read.prepaid_cents),
  clock,
  authorization: read.authorization,
  payment: read.payment,
  handMade: new Map(Object.entries(read.hand_made ?? {})),
});

type LockedRow = CardRow & TermsRead & ControlsColumns & { clock: AccountClock };

const toRequestTerms = (row: LockedRow, askedAt: Date): RequestTerms => ({
  ...toTerms(row, row.clock, row),
  controls: appliedControls(row.spending_controls, row),
  askedAt,
});

// After the card is locked, which the function does, and by that row of it. An increment counts when its
// authorization began.
const controlsColumns = (decides: boolean, askedAt: Date) => sql`p.spending_controls AS account_controls,
      CASE WHEN ${decides}::boolean AND num_nonnulls((f.card).spending_controls, p.spending_controls) > 0
        THEN count_spending(f.card, p.spending_controls, coalesce((f.authorized).created_at,
          account_time((f.card).partner_id, (f.card).mode, ${askedAt}::timestamptz))) END AS spending`;
const ACCOUNT = sql`LEFT JOIN LATERAL (SELECT spending_controls FROM partner WHERE id = (f.card).partner_id LIMIT 1) p ON true`;

/**
 * What people have said that the unreadable elements of a payment mean, which is NULL and costs nothing if there
 * are none.
 * @param said the payment's column
 */
export const handMadeOf = (said: string) =>
  sql.raw(`CASE WHEN ${said} -> 'unreadable' <> '[]' THEN
        hand_made(ARRAY(SELECT u ->> 'id' FROM jsonb_array_elements(${said} -> 'unreadable') u)) END AS hand_made`);

// A payment and its authorization are objects, because their columns have the same names as the card's.
const LOCKED = sql`f.card_cents, f.card_held_cents, f.prepaid_cents, f.fee_plan,
      ${sql.raw(of('(f.card)', CARD_COLUMNS).join(', '))}, to_jsonb(f.payment) AS payment, to_jsonb(f.authorized) AS authorization`;

/**
 * Locks the card that a request of test mode is about, and looks the request's key up.
 * @param decides whether a merchant asks for money, so that spending limits matter
 * @returns the stored response if the key has one
 * @throws ApiError `card_not_found`, `idempotency_conflict`
 */
export async function lockTestCard(
  { tx, ring }: OpenCommand,
  request: KeyedRequest,
  decides: boolean,
): Promise<RequestTerms | KeyedResponse> {
  const { partnerId, key, cardId } = request;
  const askedAt = new Date();
  const [row] = await lockTestTerms(tx, { partnerId, key, cardId, authorizationId: null, decides, askedAt });
  if (row === undefined || row.id === null) throw new ApiError('card_not_found');
  return readReplay(ring, request, row) ?? toRequestTerms(row, askedAt);
}

/**
 * The same for a request about an authorization.
 * @throws ApiError `authorization_not_found`, `idempotency_conflict`
 */
export async function lockTestAuthorization(
  { tx, ring }: OpenCommand,
  request: KeyedRequest,
  authorizationId: string,
  decides: boolean,
): Promise<(RequestTerms & { authorization: AuthorizationRow }) | KeyedResponse> {
  const { partnerId, key } = request;
  const askedAt = new Date();
  const [row] = isId('auth', authorizationId)
    ? await lockTestTerms(tx, { partnerId, key, cardId: null, authorizationId, decides, askedAt })
    : [];
  const authorization = row?.authorization ?? null;
  if (row === undefined || authorization === null) throw new ApiError('authorization_not_found');
  return readReplay(ring, request, row) ?? { ...toRequestTerms(row, askedAt), authorization };
}

interface AboutInTestMode {
  partnerId: string;
  key: string | null;
  cardId: string | null;
  authorizationId: string | null;
  decides: boolean;
  askedAt: Date;
}

// Whatever a merchant does in test mode can be read, so nothing is made by hand.
const lockTestTerms = writeStatement(
  (_, { partnerId, key, cardId, authorizationId, decides, askedAt }: AboutInTestMode) => sql<
    FoundClaim & LockedRow
  >`
    SELECT f.claim_id, f.fingerprint, f.response_status, f.response_body, a.clock, ${LOCKED}, NULL::jsonb AS hand_made,
      ${controlsColumns(decides, askedAt)}
    FROM (SELECT p.id, lock_test_clock(p.id) AS clock FROM (SELECT ${partnerId}::text AS id) p OFFSET 0) a
      CROSS JOIN LATERAL lock_test_card_terms(a.id, ${key}, ${cardId}, ${authorizationId}, false) f ${ACCOUNT}`,
);

/**
 * Locks a card for a request of the network's, which is part of a payment.
 * @returns null if there is no such card
 */
export async function lockPaymentTerms(
  tx: Transactor,
  about: AboutPayment,
): Promise<(RequestTerms & KnownMessage) | null> {
  const askedAt = new Date();
  const [row] = await lockPayment(tx, { ...about, askedAt });
  if (row === undefined) return null;
  // The network has named another card for the payment before.
  if (row.payment_card_id !== null && row.payment_card_id !== about.cardId) throw usedOtherwise('payment');
  const { said, answer } = row;
  return { ...toRequestTerms(row, askedAt), said, answer };
}

interface AboutPayment {
  cardId: string;
  /** The network's id. */
  paymentId: string;
  /** The simulated network's id of the message; null for an issuer's. */
  messageId: string | null;
  lockWaitMs: number | null;
}

/** What the simulated network has said under a message's id before; null if nothing. */
export interface KnownMessage {
  said: object | null;
  answer: MessageAnswer | null;
}

/** What is under a used id, and something else. */
export const usedOtherwise = (id: 'message' | 'payment'): ApiError =>
  new ApiError('idempotency_conflict', {
    message:
      `The network has already sent something else under this id of the ${id}, so this was ignored. Compare the two before ` +
      'you send it with another id: if they are the same purchase, that would settle it twice.',
  });

const HELD_CLOCK = heldClock(sql.raw('(f.card).partner_id'), sql.raw('(f.card).mode'));

const lockPayment = writeStatement(
  (_, about: AboutPayment & { askedAt: Date }) => sql<
    LockedRow & KnownMessage & { payment_card_id: string | null }
  >`
    SELECT ${LOCKED}, ${HELD_CLOCK} AS clock, (f.payment).card_id AS payment_card_id, (f.message).said, (f.message).answer,
      ${handMadeOf('(f.payment).said')}, ${controlsColumns(true, about.askedAt)}
    FROM lock_payment_terms(${about.cardId}, ${about.paymentId}, ${about.messageId}, ${about.lockWaitMs}) f ${ACCOUNT}`,
);

// It sets the transaction's lock_timeout, and holds the accounts' clocks, before it locks the first row, so
// that this takes no round trip of its own.
export const lockCards = writeStatement(
  (
    db,
    {
      cardIds,
      testPartnerIds,
      lockWaitMs,
    }: { cardIds: string[]; testPartnerIds: string[]; lockWaitMs: number | null },
  ) =>
    db
      .selectFrom('card as c')
      .select(of('c', CARD_COLUMNS))
      .where('c.id', '=', sql<string>`ANY((SELECT ${cardIds}::text[])::text[])`)
      .where(
        sql<boolean>`(SELECT set_config('lock_timeout', coalesce(${lockWaitMs}, current_setting('lock_timeout')), true)) IS NOT NULL`,
      )
      .where(
        sql<boolean>`(SELECT count(lock_test_clock(h.id)) FROM unnest((SELECT ${testPartnerIds}::text[])) h (id)) IS NOT NULL`,
      )
      .orderBy('c.id')
      .forNoKeyUpdate(),
  { acrossTenants: 'network' },
);
