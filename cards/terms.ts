import { sql } from 'kysely';
import { AccountLimits, DEFAULT_LIMITS, type Usage } from '../accounts/limits-rules.ts';
import type { AccountClock } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import { type FeePlan, feePlanOf } from '../domain/fees.ts';
import type { Mode } from '../domain/mode.ts';
import { CARD_COLUMNS, of } from '../platform/db/columns.ts';
import { writeStatement } from '../platform/db/sql.ts';
import type { FoundClaim, KeyedRequest } from '../requests/claim.ts';
import type { OpenCommand } from '../requests/command-context.ts';
import { type KeyedResponse, readReplay } from '../requests/respond-once.ts';
import { type IssuableProduct, issuableProducts } from './issuable-products.ts';
import type { CardBalance, CardRow } from './resource.ts';

/** The account's state that any funding of a card is decided on. */
export interface FundingTerms {
  partnerId: string;
  mode: Mode;
  feePlan: FeePlan;
  limits: AccountLimits;
  usage: Usage;
  clock: AccountClock;
}

/** {@link FundingTerms} as PostgreSQL returns them. */
export interface TermsColumns {
  fee_plan: unknown;
  limits: unknown;
  open_cards: number;
  loaded_today_cents: string;
  /** In test mode. */
  clock?: AccountClock;
}

export function fundingTerms(partnerId: string, mode: Mode, row: TermsColumns): FundingTerms {
  return {
    partnerId,
    mode,
    feePlan: feePlanOf(row.fee_plan),
    limits: row.limits === null ? DEFAULT_LIMITS : AccountLimits.parse(row.limits),
    usage: { openCards: row.open_cards, loadedTodayCents: Number(row.loaded_today_cents) },
    clock: row.clock ?? null,
  };
}

/**
 * What `lock_funding_terms` returns for a live claim. It locks the account's usage, unless it is a
 * withdrawal's, the claim and, if the request is about one, the card.
 */
export interface ClaimedTermsColumns extends TermsColumns {
  partner_id: string;
  mode: Mode;
  /** The partner's request, sealed. */
  request: Buffer;
  /** Whether the claim has a response. */
  answered: boolean;
  /** The id of what the request makes. */
  resource_id: string;
  /** Whether an earlier run has already made it, so that the network decides next. */
  is_pending: boolean;
  card_id: string | null;
  card_cents: string;
  /** What the card's pending top-ups would add. */
  arriving_cents: string;
  prepaid_cents: string;
}

/** What a test-mode operation is decided on. */
interface TestTerms {
  terms: FundingTerms;
  /** What the account may issue, the current product first (docs/partners/products.md). */
  products: IssuableProduct[];
  /** The card that the request is about. */
  card: CardRow;
  /** The balance of that card. */
  balance: CardBalance;
  prepaidCents: number;
}

/**
 * Holds the account's clock, locks its usage, if the operation counts something, and the card it is about,
 * then looks the key up and reads what the operation is decided on.
 * @returns the stored response if the key has one
 * @throws ApiError `card_not_found`, `idempotency_conflict`
 */
export async function lockTestTerms(
  { tx, ring }: OpenCommand,
  request: KeyedRequest,
  { counts }: { counts: boolean },
): Promise<TestTerms | KeyedResponse> {
  const { partnerId, key, cardId } = request;
  const [row] = await testTerms(tx, { partnerId, key, cardId, counts });
  if (row === undefined) throw new Error(`there is no account ${partnerId}`);
  if (cardId !== null && row.id === null) throw new ApiError('card_not_found');
  const terms = fundingTerms(partnerId, 'test', row);
  const { products } = row;
  const balance = { balanceCents: Number(row.card_cents), heldCents: Number(row.card_held_cents) };
  const prepaidCents = Number(row.prepaid_cents);
  return readReplay(ring, request, row) ?? { terms, products, card: row, balance, prepaidCents };
}

const testTerms = writeStatement(
  (_, values: { partnerId: string; key: string | null; cardId: string | null; counts: boolean }) => sql<
    FoundClaim &
      TermsColumns &
      CardRow & {
        card_cents: string;
        card_held_cents: string;
        prepaid_cents: string;
        products: IssuableProduct[];
      }
  >`
    SELECT f.claim_id, f.fingerprint, f.response_status, f.response_body, f.card_cents, f.card_held_cents,
      f.prepaid_cents, f.fee_plan, f.limits,
      f.open_cards, f.loaded_today_cents, a.clock, ${sql.raw(of('(f.card)', CARD_COLUMNS).join(', '))},
      CASE WHEN ${values.cardId}::text IS NULL THEN ${issuableProducts(sql.ref('a.partner_id'))} END AS products
    FROM (SELECT p.id AS partner_id, lock_test_clock(p.id) AS clock
      FROM (SELECT ${values.partnerId}::text AS id) p OFFSET 0) a
      CROSS JOIN LATERAL
      lock_test_card_terms(a.partner_id, ${values.key}, ${values.cardId}, NULL, ${values.counts}) f`,
);

/**
 * Locks the usage of a claim's account: the first lock of whoever takes a funding out of it. A withdrawal is
 * not in it.
 */
export const lockClaimUsage = writeStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('account_usage as u')
      .innerJoin('idempotency_claim as c', (join) =>
        join.onRef('c.partner_id', '=', 'u.partner_id').onRef('c.mode', '=', 'u.mode'),
      )
      .select('u.mode')
      .where('c.id', '=', claimId)
      .where('c.operation', '<>', 'withdraw_from_card')
      .forNoKeyUpdate('u'),
  { acrossTenants: 'id' },
);
