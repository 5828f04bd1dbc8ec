import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../../db/sql.ts';
import { DEFAULT_FEE_PLAN, FeePlan } from '../../domain/fees.ts';
import { AccountLimits, DEFAULT_LIMITS, type Usage } from '../../domain/limits.ts';
import type { Mode } from '../../domain/mode.ts';
import type { CommandContext } from '../command-context.ts';
import { openRequest } from '../idempotency/idempotency-response.ts';

/** What any funding of a card is decided on. */
export interface FundingTerms {
  partnerId: string;
  mode: Mode;
  feePlan: FeePlan;
  limits: AccountLimits;
  usage: Usage;
}

/** {@link FundingTerms} as they are read. */
export interface TermsColumns {
  fee_plan: unknown;
  limits: unknown;
  open_cards: number;
  loaded_today_cents: string;
}

export function fundingTermsOf(partnerId: string, mode: Mode, row: TermsColumns): FundingTerms {
  return {
    partnerId,
    mode,
    feePlan: row.fee_plan === null ? DEFAULT_FEE_PLAN : FeePlan.parse(row.fee_plan),
    limits: row.limits === null ? DEFAULT_LIMITS : AccountLimits.parse(row.limits),
    usage: { openCards: row.open_cards, loadedTodayCents: Number(row.loaded_today_cents) },
  };
}

/** The terms of a claim whose work a workflow does. */
export interface ClaimedTerms extends FundingTerms {
  /** As it was sealed: to be parsed. */
  request: unknown;
  answered: boolean;
  /** The card it is about, where there was one before it; locked as well. */
  cardId: string | null;
  /** On that card. */
  cardCents: number;
  /** What its pending top-ups would add. */
  arrivingCents: bigint;
}

/**
 * Locks a claim and its account's usage, then reads everything a funding is decided on; null where there is no such
 * claim any more.
 * @param fundingId of the card or top-up the claim makes or has made
 * @param more what else to read: columns of a statement in which `f` has the terms. They may be as old as its start.
 * @returns `status` is that of the card or top-up where an earlier run made it already.
 */
export async function lockFundingTerms<Status extends string, More = object>(
  tx: EntityManager,
  { ring }: CommandContext,
  claimId: string,
  fundingId: string,
  more: string[] = [],
): Promise<{ terms: ClaimedTerms; status: Status | null; more: More } | null> {
  const [row] = await query<ClaimedRow<Status> & More>(
    tx,
    `SELECT ${['f.*', ...more].join(', ')} FROM lock_funding_terms($1, $2) f`,
    [claimId, fundingId],
  );
  // A claim of test mode, whose work no workflow does, was left by a process of an earlier release.
  if (row === undefined || row.mode === 'test') return null;
  const terms = {
    ...fundingTermsOf(row.partner_id, row.mode, row),
    request: openRequest(ring, claimId, row.request),
    answered: row.answered,
    cardId: row.card_id,
    cardCents: Number(row.card_cents),
    arrivingCents: BigInt(row.arriving_cents),
  };
  return { terms, status: row.funding_status, more: row };
}

interface ClaimedRow<Status> extends TermsColumns {
  partner_id: string;
  mode: Mode;
  request: Buffer;
  answered: boolean;
  card_id: string | null;
  card_cents: string;
  arriving_cents: string;
  funding_status: Status | null;
}
