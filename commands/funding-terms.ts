import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';
import { DEFAULT_FEE_PLAN, FeePlan } from '../domain/fees.ts';
import { AccountLimits, DEFAULT_LIMITS, type Usage } from '../domain/limits.ts';
import type { Mode } from '../domain/mode.ts';
import type { CommandContext } from './command-context.ts';
import { openRequest } from './idempotency-response.ts';
import { lockUsageAndClaim } from './lock-claim.ts';

/** What any funding of a card is decided on. */
export interface FundingTerms {
  partnerId: string;
  mode: Mode;
  /** As it was sealed: to be parsed. */
  request: unknown;
  answered: boolean;
  /** The card it is about, where there was one before it. */
  cardId: string | null;
  feePlan: FeePlan;
  limits: AccountLimits;
  usage: Usage;
}

/**
 * Locks a claim and its account's usage, then reads everything a funding is decided on; null where there is no such
 * claim any more.
 * @param more what else to read: columns and joins, for a statement in which `c` is the claim, and their values from $2
 */
export async function lockFundingTerms<More>(
  tx: EntityManager,
  { ring }: CommandContext,
  claimId: string,
  more: { columns: string; joins: string; values: readonly unknown[] },
): Promise<{ terms: FundingTerms; more: More } | null> {
  if ((await lockUsageAndClaim(tx, claimId)) === null) return null;
  // A later statement than the lock: a wait does not refresh its own statement's snapshot. Another transaction can have
  // counted a day that began since this one did.
  const [row] = await query<TermsRow & More>(
    tx,
    `SELECT c.partner_id, c.mode, c.request, c.response_status IS NOT NULL AS answered, c.card_id,
       p.fee_plan, p.limits, u.open_cards,
       CASE WHEN u.loaded_on >= (now() AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END AS loaded_today_cents,
       ${more.columns}
     FROM idempotency_claim c
     JOIN partner p ON p.id = c.partner_id
     JOIN account_usage u ON u.partner_id = c.partner_id AND u.mode = c.mode
     ${more.joins}
     WHERE c.id = $1`,
    [claimId, ...more.values],
  );
  if (row === undefined) throw new Error(`the claim ${claimId} is locked and can not be gone`);
  const terms = {
    partnerId: row.partner_id,
    mode: row.mode,
    request: openRequest(ring, claimId, row.request),
    answered: row.answered,
    cardId: row.card_id,
    feePlan: row.fee_plan === null ? DEFAULT_FEE_PLAN : FeePlan.parse(row.fee_plan),
    limits: row.limits === null ? DEFAULT_LIMITS : AccountLimits.parse(row.limits),
    usage: { openCards: row.open_cards, loadedTodayCents: Number(row.loaded_today_cents) },
  };
  return { terms, more: row };
}

interface TermsRow {
  partner_id: string;
  mode: Mode;
  request: Buffer;
  answered: boolean;
  card_id: string | null;
  fee_plan: unknown;
  limits: unknown;
  open_cards: number;
  loaded_today_cents: string;
}
