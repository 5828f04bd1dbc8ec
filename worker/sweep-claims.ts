import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';
import type { WorkflowOperation } from '../domain/claim-operation.ts';
import { siblingId } from '../domain/ids.ts';
import type { Mode } from '../domain/mode.ts';
import { startClaimed } from '../workflows/client/start-claimed.ts';
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
  const deadlinesMs: Record<WorkflowOperation, number> = {
    create_card: config.issuanceDeadlineMs,
    top_up_card: config.topUpDeadlineMs,
    freeze_card: 0,
    unfreeze_card: 0,
    block_card: 0,
  };
  const abandoned = await query<AbandonedClaim>(
    em,
    `SELECT id, partner_id, mode, operation, card_id FROM idempotency_claim
     WHERE response_status IS NULL AND lease_expires_at < now() AND operation = ANY ($1)
       AND (swept_at IS NULL OR swept_at < now() - interval '1 minute')
     ORDER BY lease_expires_at LIMIT 100`,
    [Object.keys(deadlinesMs)],
  );
  for (const claim of abandoned) {
    const { operation } = claim;
    const workflow = {
      operation,
      taskQueue,
      deadlineMs: deadlinesMs[operation],
      claimId: claim.id,
      cardId: claim.card_id ?? siblingId('card', claim.id),
      partnerId: claim.partner_id,
      mode: claim.mode,
    };
    await client.withDeadline(Date.now() + START_TIMEOUT_MS, () => startClaimed(client, workflow));
    // Not before it is started: what could not be is tried again in the next turn.
    await query(em, 'UPDATE idempotency_claim SET swept_at = now() WHERE id = $1', [claim.id]);
    logger.info(
      { claimId: claim.id, operation, partnerId: claim.partner_id, mode: claim.mode },
      'the abandoned work of a claim goes on',
    );
  }
}

interface AbandonedClaim {
  id: string;
  partner_id: string;
  mode: Mode;
  operation: WorkflowOperation;
  card_id: string | null;
}
