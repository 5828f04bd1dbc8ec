import type { EntityManager } from '@mikro-orm/postgresql';
import { ApiError } from '../../domain/api-error.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { applyOperationWith } from '../../ledger/apply-operation.ts';
import { LedgerRejected } from '../../ledger/ledger-error.ts';
import type { LedgerOperation } from '../../ledger/operation.ts';
import type { CommandContext } from '../command-context.ts';
import { type Announcement, announcementOf, type News } from '../idempotency/announcement.ts';
import { type KeyedRequest, requireKept } from '../idempotency/answered-claim.ts';
import { countFunding } from './account-usage.ts';

/** The card or top-up a funding makes. */
export interface NewFunding {
  /**
   * An INSERT that returns partner_id, mode, loaded_cents and today, the UTC day it is counted on. It makes no row where
   * its external_ref is taken.
   */
  sql: string;
  values: readonly unknown[];
  /** How many open cards it makes. */
  newCards: 0 | 1;
}

/** Of a funding that is final already: what it says, and to whom. */
export interface FundingAnswer {
  ring: CommandContext['ring'];
  request: KeyedRequest;
  news: News;
}

/**
 * Inserts a funding, counts it towards its account's limits, moves or holds its money and announces it, if it is final
 * already, all in one statement: the account's other fundings wait for it.
 * @throws ApiError `external_ref_taken` (the INSERT made no row), `insufficient_funds`, `validation_failed` (a balance
 * would go past the largest integer): roll back.
 */
export async function insertFunding(
  tx: EntityManager,
  funding: NewFunding,
  operation: LedgerOperation,
  answer?: FundingAnswer,
): Promise<void> {
  const announcement: Announcement =
    answer === undefined
      ? { ctes: [], values: [], kept: 'true' }
      : announcementOf(answer.ring, answer.request, answer.news, funding.values.length + 1);
  const { moved, wrote } = await applyOperationWith(tx, operation, {
    ctes: [
      `done AS (${funding.sql})`,
      `counted AS (${countFunding(funding.newCards)})`,
      ...announcement.ctes,
    ],
    values: [...funding.values, ...announcement.values],
    reads: { made: 'EXISTS (SELECT FROM done)', kept: announcement.kept },
  }).catch((error: unknown) => {
    if (!(error instanceof LedgerRejected) || error.reason !== 'balance_out_of_range') throw error;
    throw ApiError.ofField(
      'amount',
      `amount would take a balance above ${MAX_AMOUNT_CENTS} cents, the most it can be`,
    );
  });
  if (!wrote.made) throw new ApiError('external_ref_taken');
  if (moved.outcome === 'insufficient_funds') throw new ApiError('insufficient_funds');
  requireKept(wrote.kept === true);
}
