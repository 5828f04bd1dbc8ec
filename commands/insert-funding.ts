import type { EntityManager } from '@mikro-orm/postgresql';
import { ApiError } from '../domain/api-error.ts';
import { applyOperationWith } from '../ledger/apply-operation-with.ts';
import type { LedgerOperation } from '../ledger/operation.ts';
import { countFunding } from './account-usage.ts';
import { announcementOf, type News } from './announcement.ts';
import type { CommandContext } from './command-context.ts';

/** The card or top-up a funding makes. */
export interface NewFunding {
  /**
   * An INSERT that returns partner_id, mode, loaded_cents and today, the UTC day it was made on. It makes no row where
   * its external_ref is taken.
   */
  sql: string;
  values: readonly unknown[];
  /** How many open cards it makes. */
  newCards: 0 | 1;
}

/**
 * Inserts a funding, counts it towards its account's limits, moves or holds its money and announces it, if it is final
 * already, all in one statement: the account's other fundings wait for it.
 * @param answered the claim that the news answers
 * @throws ApiError `external_ref_taken` (the INSERT made no row), `insufficient_funds`: roll back.
 */
export async function insertFunding(
  tx: EntityManager,
  funding: NewFunding,
  operation: LedgerOperation,
  answered?: { ring: CommandContext['ring']; claimId: string; news: News },
): Promise<void> {
  const ctes = [`done AS (${funding.sql})`, `counted AS (${countFunding(funding.newCards)})`];
  const values = [...funding.values];
  if (answered !== undefined) {
    const { ring, claimId, news } = answered;
    const announcement = announcementOf(ring, claimId, news, values.length + 1);
    ctes.push(announcement.sql);
    values.push(...announcement.values);
  }
  const { moved, wrote } = await applyOperationWith(tx, operation, { ctes, values });
  if (!wrote) throw new ApiError('external_ref_taken');
  if (moved.outcome === 'insufficient_funds') throw new ApiError('insufficient_funds');
}
