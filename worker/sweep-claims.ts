import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';
import type { Mode } from '../domain/mode.ts';
import { startIssueCard } from '../workflows/client/start-issue-card.ts';
import { type Repetition, repeat } from './repeat.ts';

const INTERVAL_MS = 2_000;
const START_TIMEOUT_MS = 3_000;

export interface SweepDependencies {
  orm: Orm;
  client: Client;
  taskQueue: string;
  config: Config;
  logger: Logger;
}

/**
 * Starts what was lost between a claim and its workflow: an unanswered claim whose lease ran out belongs to a process
 * that died. Starting a workflow that did start changes nothing.
 */
export function startSweep(dependencies: SweepDependencies): Repetition {
  return repeat('the sweep of abandoned claims', INTERVAL_MS, dependencies.logger, () =>
    sweepOnce(dependencies),
  );
}

async function sweepOnce({ orm, client, taskQueue, config, logger }: SweepDependencies): Promise<void> {
  const em = orm.em.fork();
  const abandoned = await query<{ id: string; partner_id: string; mode: Mode }>(
    em,
    `SELECT id, partner_id, mode FROM idempotency_claim
     WHERE response_status IS NULL AND lease_expires_at < now() AND operation = 'create_card'
       AND (swept_at IS NULL OR swept_at < now() - interval '1 minute')
     ORDER BY lease_expires_at LIMIT 100`,
  );
  for (const claim of abandoned) {
    const start = {
      taskQueue,
      deadlineMs: config.issuanceDeadlineMs,
      claimId: claim.id,
      partnerId: claim.partner_id,
      mode: claim.mode,
    };
    await client.withDeadline(Date.now() + START_TIMEOUT_MS, () => startIssueCard(client, start));
    // Not before it is started: what could not be is tried again in the next turn.
    await query(em, 'UPDATE idempotency_claim SET swept_at = now() WHERE id = $1', [claim.id]);
    logger.info(
      { claimId: claim.id, partnerId: claim.partner_id, mode: claim.mode },
      'an abandoned issuance goes on',
    );
  }
}
