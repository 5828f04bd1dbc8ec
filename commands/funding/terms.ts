import { type RawBuilder, sql } from 'kysely';
import { type Transactor, writeStatement } from '../../db/sql.ts';
import { DEFAULT_FEE_PLAN, FeePlan } from '../../domain/fees.ts';
import { AccountLimits, DEFAULT_LIMITS, type Usage } from '../../domain/limits.ts';
import type { Mode, Tenant } from '../../domain/mode.ts';
import type { CommandContext } from '../command-context.ts';
import { openRequest } from '../idempotency/response.ts';

/** The state that any funding of a card is decided on. */
export interface FundingTerms {
  partnerId: string;
  mode: Mode;
  feePlan: FeePlan;
  limits: AccountLimits;
  usage: Usage;
}

/** {@link FundingTerms} as PostgreSQL returns them. */
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
export interface ClaimedTerms<Request = unknown, More = unknown> extends FundingTerms {
  request: Request;
  /** The id of what it makes. */
  resourceId: string;
  answered: boolean;
  /** The card the request is about, if there was one before it; it is locked as well. */
  cardId: string | null;
  /** The balance of that card. */
  cardCents: number;
  /** What its pending top-ups would add. */
  arrivingCents: bigint;
  /** Whether an earlier run has already created it, so that the network decides next. */
  isPending: boolean;
  more: More;
}

/**
 * Creates a function that locks a claim and its account's usage, then reads everything a funding is decided on.
 * @param schema of its request
 * @param more more columns to read, in a statement where `f` has the terms. Their values may be as old as its start.
 * @returns null if there is no such claim any more
 */
export function termsReader<Request, More>(
  schema: { parse(request: unknown): Request },
  more: RawBuilder<More> | null,
): (tx: Transactor, context: CommandContext, claimId: string) => Promise<ClaimedTerms<Request, More> | null> {
  const lock = writeStatement(
    (_, values: { claimId: string }) => sql<ClaimedRow & More>`
      SELECT f.*${more === null ? sql`` : sql`, ${more}`} FROM lock_funding_terms(${values.claimId}) f`,
  );
  return async (tx, { ring }, claimId) => {
    const [row] = await lock(tx, { claimId });
    // No workflow works for a test-mode claim. A process of an earlier release left this one.
    if (row === undefined || row.mode === 'test') return null;
    if (row.resource_id === null) throw new Error(`${claimId} funds nothing`);
    return {
      ...fundingTermsOf(row.partner_id, row.mode, row),
      request: schema.parse(openRequest(ring, claimId, row.request)),
      resourceId: row.resource_id,
      answered: row.answered,
      isPending: row.is_pending,
      cardId: row.card_id,
      cardCents: Number(row.card_cents),
      arrivingCents: BigInt(row.arriving_cents),
      more: row,
    };
  };
}

interface ClaimedRow extends TermsColumns {
  partner_id: string;
  mode: Mode;
  request: Buffer;
  answered: boolean;
  resource_id: string | null;
  is_pending: boolean;
  card_id: string | null;
  card_cents: string;
  arriving_cents: string;
}

/**
 * An UPDATE that counts a funding towards its account's limits, for a statement whose CTE `done` has its partner_id, mode,
 * `loaded_cents` and `today`, the UTC day it is counted on.
 * @param newCards how many open cards it adds
 */
export const countFunding = (newCards: 0 | 1): RawBuilder<unknown> => sql`
  UPDATE account_usage u SET open_cards = u.open_cards + ${sql.lit(newCards)}, loaded_on = greatest(u.loaded_on, done.today),
    loaded_cents = CASE WHEN u.loaded_on >= done.today THEN u.loaded_cents ELSE 0 END + done.loaded_cents
  FROM done WHERE u.partner_id = done.partner_id AND u.mode = done.mode`;

/**
 * Takes a failed funding out of its account's usage: the open card it counted as and, on the day it was counted, its cents.
 * @param funding the card or top-up; its row still exists
 */
export async function uncountFunding(
  tx: Transactor,
  funding: { id: string; partner_id: string; mode: Mode },
  loadedCents: number,
  newCards: 0 | 1,
): Promise<void> {
  const { id: fundingId, partner_id: partnerId, mode } = funding;
  await uncount(tx, { partnerId, mode, fundingId, loadedCents, newCards });
}

const uncount = writeStatement(
  (_, values: Tenant & { fundingId: string; loadedCents: number; newCards: number }) => sql`
    UPDATE account_usage SET open_cards = open_cards - ${values.newCards}::int,
      loaded_cents = loaded_cents - CASE WHEN loaded_on = coalesce(
        (SELECT counted_on FROM card WHERE id = ${values.fundingId}),
        (SELECT counted_on FROM topup WHERE id = ${values.fundingId}))
        THEN ${values.loadedCents}::bigint ELSE 0 END
    WHERE partner_id = ${values.partnerId} AND mode = ${values.mode}`,
);

/** Stops counting a blocked card as open. */
export async function uncountOpenCard(tx: Transactor, tenant: Tenant): Promise<void> {
  await uncountCard(tx, tenant);
}

const uncountCard = writeStatement((db, { partnerId, mode }: Tenant) =>
  db
    .updateTable('account_usage')
    .set((eb) => ({ open_cards: eb('open_cards', '-', 1) }))
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode),
);

/** {@link uncountOpenCard} as an UPDATE of a statement whose CTE `done` has the card's partner_id and mode. */
export const uncountOpenCardOfDone: RawBuilder<unknown> = sql`
  UPDATE account_usage u SET open_cards = u.open_cards - 1
  FROM done WHERE u.partner_id = done.partner_id AND u.mode = done.mode`;
