import { sql } from 'kysely';
import { heldClock } from '../accounts/clock.ts';
import { appliedControls, type ControlsColumns } from '../cards/applied-controls.ts';
import type { CardBalance, CardRow } from '../cards/resource.ts';
import type { AccountClock } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import { type FeePlan, feePlanOf } from '../domain/fees.ts';
import { isId } from '../domain/ids.ts';
import type { AppliedControls } from '../domain/spending-controls.ts';
import { AUTHORIZATION_COLUMNS, CARD_COLUMNS, of, PAYMENT_COLUMNS } from '../platform/db/columns.ts';
import { type Transactor, writeStatement } from '../platform/db/sql.ts';
import type { FoundClaim, KeyedRequest } from '../requests/claim.ts';
import type { OpenCommand } from '../requests/command-context.ts';
import { type KeyedResponse, readReplay } from '../requests/respond-once.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import type { PaymentRow } from './booking-rows.ts';
import type { HandMade } from './rules.ts';
import type { MessageAnswer } from './tables.ts';

/**
 * What everything about an authorization is decided on. The transaction holds the card's lock, which guards
 * all of it.
 */
interface AuthorizationTerms {
  card: CardRow;
  /** The card's. */
  balance: CardBalance;
  feePlan: FeePlan;
  /** The account's prepaid balance, which is not locked: it may change at any time. */
  prepaidCents: number;
  /** The account's, which the transaction holds. */
  clock: AccountClock;
}

/** What a request of a payment is decided on. */
export interface RequestTerms extends DecisionTerms {
  authorization: AuthorizationRow | null;
  payment: PaymentRow | null;
  /** By the network's id of an element of the payment: what a person says that it means. */
  handMade: ReadonlyMap<string, HandMade>;
}

/** What a request for money is decided on, too. */
export interface DecisionTerms extends AuthorizationTerms {
  /** What restricts the card. Spending limits are in it only if a request is to be decided. */
  controls: AppliedControls;
  /** When the terms were asked for, before the wait for the card's lock, in real time. */
  askedAt: Date;
}

interface TermsColumns extends ControlsColumns {
  card_cents: string;
  card_held_cents: string;
  prepaid_cents: string;
  fee_plan: unknown;
  clock: AccountClock;
}

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

/**
 * An authorization's columns beside a card's, which have the same names. Each is null if there is no
 * authorization.
 */
type AuthorizedColumns = { [Column in keyof AuthorizationRow as `authorized_${Column}`]: unknown };

type PaymentColumns = { [Column in keyof PaymentRow as `payment_${Column}`]: unknown };

const PAYMENT = sql.raw(
  PAYMENT_COLUMNS.map((column) => `(f.payment).${column} AS payment_${column}`).join(', '),
);

const AUTHORIZED = sql.raw(
  AUTHORIZATION_COLUMNS.map((column) => `(f.authorized).${column} AS authorized_${column}`).join(', '),
);

/**
 * Locks the card that a request of test mode is about, and looks the request's key up.
 * @param decides whether a merchant asks for money, so that spending limits matter
 * @returns the stored response if the key has one
 * @throws ApiError `card_not_found`, `idempotency_conflict`
 */
export async function lockTestCard(
  { tx, ring }: OpenCommand,
  request: KeyedRequest,
  { decides } = { decides: false },
): Promise<RequestTerms | KeyedResponse> {
  const { partnerId, key, cardId } = request;
  const askedAt = new Date();
  const [row] = await lockTestTerms(tx, { partnerId, key, cardId, authorizationId: null, decides, askedAt });
  if (row === undefined || row.id === null) throw new ApiError('card_not_found');
  const replay = readReplay(ring, request, row);
  return replay ?? { ...toTerms(row, askedAt), authorization: null, payment: null, handMade: new Map() };
}

/**
 * The same for a request about an authorization.
 * @throws ApiError `authorization_not_found`, `idempotency_conflict`
 */
export async function lockTestAuthorization(
  { tx, ring }: OpenCommand,
  request: KeyedRequest,
  authorizationId: string,
  { decides } = { decides: false },
): Promise<(RequestTerms & { authorization: AuthorizationRow }) | KeyedResponse> {
  const { partnerId, key } = request;
  const askedAt = new Date();
  const [row] = isId('auth', authorizationId)
    ? await lockTestTerms(tx, { partnerId, key, cardId: null, authorizationId, decides, askedAt })
    : [];
  const authorization = row === undefined ? null : toAuthorizationRow(row);
  if (row === undefined || authorization === null) throw new ApiError('authorization_not_found');
  const replay = readReplay(ring, request, row);
  // Whatever a merchant does in test mode can be read.
  const handMade = new Map<string, HandMade>();
  return replay ?? { ...toTerms(row, askedAt), authorization, payment: toPaymentRow(row), handMade };
}

interface AboutInTestMode {
  partnerId: string;
  key: string | null;
  cardId: string | null;
  authorizationId: string | null;
  decides: boolean;
  askedAt: Date;
}

const lockTestTerms = writeStatement(
  (_, { partnerId, key, cardId, authorizationId, decides, askedAt }: AboutInTestMode) => sql<
    FoundClaim & TermsColumns & CardRow & AuthorizedColumns & PaymentColumns
  >`
    SELECT f.claim_id, f.fingerprint, f.response_status, f.response_body, f.card_cents, f.card_held_cents,
      f.prepaid_cents, f.fee_plan, a.clock, ${sql.raw(of('(f.card)', CARD_COLUMNS).join(', '))}, ${AUTHORIZED}, ${PAYMENT},
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
  return {
    ...toTerms(row, askedAt),
    authorization: toAuthorizationRow(row),
    payment: toPaymentRow(row),
    handMade: new Map(Object.entries(row.hand_made ?? {})),
    said,
    answer,
  };
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
    TermsColumns &
      CardRow &
      AuthorizedColumns &
      PaymentColumns &
      KnownMessage & { payment_card_id: string | null; hand_made: Record<string, HandMade> | null }
  >`
    SELECT f.card_cents, f.card_held_cents, f.prepaid_cents, f.fee_plan, ${HELD_CLOCK} AS clock,
      (f.payment).card_id AS payment_card_id, (f.message).said, (f.message).answer,
      ${handMadeOf('(f.payment).said')},
      ${controlsColumns(true, about.askedAt)}, ${sql.raw(of('(f.card)', CARD_COLUMNS).join(', '))}, ${AUTHORIZED}, ${PAYMENT}
    FROM lock_payment_terms(${about.cardId}, ${about.paymentId}, ${about.messageId}, ${about.lockWaitMs}) f ${ACCOUNT}`,
);

function toTerms(row: TermsColumns & CardRow, askedAt: Date): DecisionTerms {
  return {
    card: row,
    balance: { balanceCents: Number(row.card_cents), heldCents: Number(row.card_held_cents) },
    feePlan: feePlanOf(row.fee_plan),
    controls: appliedControls(row.spending_controls, row),
    askedAt,
    prepaidCents: Number(row.prepaid_cents),
    clock: row.clock,
  };
}

function toPaymentRow(row: PaymentColumns): PaymentRow | null {
  if (row.payment_payment_id === null) return null;
  const columns = PAYMENT_COLUMNS.map((column) => [column, row[`payment_${column}`]]);
  return Object.fromEntries(columns) as PaymentRow;
}

function toAuthorizationRow(row: AuthorizedColumns): AuthorizationRow | null {
  if (row.authorized_id === null) return null;
  const columns = AUTHORIZATION_COLUMNS.map((column) => [column, row[`authorized_${column}`]]);
  return Object.fromEntries(columns) as AuthorizationRow;
}
