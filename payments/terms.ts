import { sql } from 'kysely';
import type { ControlsColumns } from '../cards/applied-controls.ts';
import type { CardRow } from '../cards/resource.ts';
import type { AccountClock } from '../domain/account-clock.ts';
import type { Tenant } from '../domain/mode.ts';
import { CARD_COLUMNS, of } from '../platform/db/columns.ts';
import { type Reader, readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import type { FoundClaim } from '../requests/claim.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import type { PaymentRow, RefundedTransaction } from './booking-rows.ts';
import type { HandMade } from './rules.ts';
import type { MessageAnswer } from './tables.ts';

/** What is asked about: a payment on a card, and what is told of it. */
export interface AskedTerms {
  card_id: string;
  /** The network's id; null of what is by itself. */
  payment_id: string | null;
  /** Whose the card has to be; undefined if the network names it. */
  partner_id?: string;
  mode?: Tenant['mode'];
  /** The message's; undefined if nothing is to be decided. */
  type?: string;
  /** The simulated network's id. */
  message_id?: string;
  /** The network's ids of what may be booked. */
  elements?: readonly string[];
  /** The purchase that a refund names. */
  refunded_id?: string | undefined;
}

/** What is read of a payment, its card and its account. */
export interface TermsRow extends Omit<CardRow, 'id'>, ControlsColumns {
  /** Null if there is no such card; then the card's other columns are, too. */
  id: string | null;
  card_cents: string;
  card_held_cents: string;
  prepaid_cents: string;
  fee_plan: unknown;
  /** In test mode. */
  clock: AccountClock;
  payment: (PaymentRow & { card_id: string }) | null;
  authorization: AuthorizationRow | null;
  /** By the network's id of an element: what a person says that it means; null if nobody says anything. */
  hand_made: Record<string, HandMade> | null;
  /** By the network's id of an element: its transaction; null if none is booked. */
  booked: Record<string, string> | null;
  /** Of a refund. */
  refund: RefundRead | null;
  asked_at: string;
}

/** What a refund is decided on, too. */
export interface RefundRead {
  /** What the card's pending top-ups would add. */
  arriving_cents: string;
  /** The purchase that it gives money back for: the only one of its payment, unless it is named. */
  refunded: RefundedTransaction | null;
  /** How many purchases its payment has; 0 if the refund names one. */
  purchases: number;
}

/** What the simulated network has said under a message's id before; null if nothing. */
export interface KnownMessage {
  said: object | null;
  answer: MessageAnswer | null;
}

const CARD = sql.raw(of('(f.card)', CARD_COLUMNS).join(', '));

interface TermsValues {
  asked: string;
  /** Before the wait for the locks, in real time: spending is read of that moment. */
  askedAt: Date;
}

const columns = (
  askedAt: Date,
) => sql`f.card_cents, f.card_held_cents, f.prepaid_cents, f.fee_plan, f.account_controls,
      f.spending, f.clock, f.payment, f.authorized AS authorization, f.hand_made, f.booked, f.said, f.answer, f.refund,
      ${askedAt}::timestamptz AS asked_at, ${CARD}`;

/**
 * Locks any number of cards in the order of their ids, in one round trip with all that is read of them and
 * their payments.
 * @param lockWaitMs how long to wait for a lock before PostgreSQL's error; null for the session's limit
 * @returns in the order asked
 */
export const lockTerms = (
  tx: Transactor,
  asked: readonly AskedTerms[],
  lockWaitMs: number | null,
): Promise<(TermsRow & KnownMessage)[]> =>
  lock(tx, { asked: JSON.stringify(asked), askedAt: new Date(), lockWaitMs });

const lock = writeStatement(
  (_, { asked, askedAt, lockWaitMs }: TermsValues & { lockWaitMs: number | null }) => sql<
    TermsRow & KnownMessage
  >`
    SELECT ${columns(askedAt)}
    FROM lock_booking_terms(${asked}::jsonb, ${askedAt}::timestamptz, true, ${lockWaitMs}) f`,
);

/** The same without a lock: what is under way may differ for a moment. */
export const readTerms = (em: Reader, asked: readonly AskedTerms[]): Promise<TermsRow[]> =>
  read(em, { asked: JSON.stringify(asked), askedAt: new Date() });

const read = readStatement(
  (_, { asked, askedAt }: TermsValues) => sql<TermsRow>`
    SELECT ${columns(askedAt)} FROM lock_booking_terms(${asked}::jsonb, ${askedAt}::timestamptz, false, NULL) f`,
);

// A decision is on one card, and is waited for, so it reads no more than it needs. A payment and its
// authorization are objects, because their columns have the same names as the card's. An increment counts
// when its authorization began.
const decisionColumns = (
  askedAt: Date,
  decides: boolean,
) => sql`f.card_cents, f.card_held_cents, f.prepaid_cents, f.fee_plan,
      to_jsonb(f.payment) AS payment, to_jsonb(f.authorized) AS authorization, NULL::jsonb AS refund,
      p.spending_controls AS account_controls,
      CASE WHEN ${decides}::boolean AND num_nonnulls((f.card).spending_controls, p.spending_controls) > 0
        THEN count_spending(f.card, p.spending_controls, coalesce((f.authorized).created_at,
          account_time((f.card).partner_id, (f.card).mode, ${askedAt}::timestamptz))) END AS spending,
      ${askedAt}::timestamptz AS asked_at, ${CARD}`;
const ACCOUNT = sql`LEFT JOIN LATERAL (SELECT spending_controls FROM partner
      WHERE id = (f.card).partner_id LIMIT 1) p ON true`;
const UNREADABLE = sql`ARRAY(SELECT u ->> 'id' FROM jsonb_array_elements((f.payment).said -> 'unreadable') u)`;

/** The same for a request of an issuer's. */
export const lockDecisionTerms = (
  tx: Transactor,
  { card_id, payment_id }: AskedTerms,
  lockWaitMs: number | null,
): Promise<TermsRow[]> => lockDecision(tx, { card_id, payment_id, lockWaitMs, askedAt: new Date() });

const lockDecision = writeStatement(
  (
    _,
    about: Pick<AskedTerms, 'card_id' | 'payment_id'> & { lockWaitMs: number | null; askedAt: Date },
  ) => sql<TermsRow>`
    SELECT ${decisionColumns(about.askedAt, true)}, NULL::jsonb AS clock,
      CASE WHEN (f.payment).said -> 'unreadable' <> '[]' THEN hand_made(${UNREADABLE}) END AS hand_made,
      CASE WHEN (f.payment).said -> 'unreadable' <> '[]' THEN read_booked_elements('live', ${UNREADABLE}) END AS booked
    FROM lock_payment_terms(${about.card_id}, ${about.payment_id}, ${about.lockWaitMs}) f ${ACCOUNT}`,
);

interface TestValues {
  partnerId: string;
  key: string | null;
  cardId: string | null;
  authorizationId: string | null;
  /** Whether a merchant asks for money, so that spending limits matter. */
  decides: boolean;
  askedAt: Date;
}

/** The same for a request of test mode about a card or an authorization, with the claim of its key. */
export const lockTestTerms = writeStatement(
  (_, { partnerId, key, cardId, authorizationId, decides, askedAt }: TestValues) => sql<
    FoundClaim & TermsRow
  >`
    SELECT f.claim_id, f.fingerprint, f.response_status, f.response_body, a.clock,
      ${decisionColumns(askedAt, decides)},
      NULL::jsonb AS hand_made, NULL::jsonb AS booked
    FROM (SELECT p.id, lock_test_clock(p.id) AS clock FROM (SELECT ${partnerId}::text AS id) p OFFSET 0) a
      CROSS JOIN LATERAL lock_test_card_terms(a.id, ${key}, ${cardId}, ${authorizationId}, false) f ${ACCOUNT}`,
);

/** What a refund of test mode is decided on, under the card's lock. */
export const readRefundTerms = writeStatement(
  (_, { cardId, refundedId }: { cardId: string; refundedId: string | null }) => sql<RefundRead>`
    SELECT arriving_cents, refunded, purchases FROM read_refund_terms(${cardId}, NULL, ${refundedId})`,
);
