import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import type { Config } from '../platform/config/service.ts';
import type { Orm } from '../platform/db/orm.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type DescribedError, describeError } from '../platform/process/describe-error.ts';
import { type Repetition, repeat } from '../platform/process/repeat.ts';
import { asPartOf } from '../platform/process/work-context.ts';
import { isTemporalAway } from '../platform/temporal/connection.ts';
import { type AbandonedClaim, putClaimOff, takeAbandonedClaims } from './abandoned-claims.ts';
import { claimedWorkflow, startClaimed, WORKFLOW_OPERATIONS } from './claimed-workflow.ts';

const INTERVAL_MS = 1_000;
const STARTS_AT_ONCE = 16;
const START_TIMEOUT_MS = 3_000;
/** How long a claim is left alone after it was started, and at most after it could not be. */
const MAX_PAUSE_MS = 60_000;
/**
 * The pause after the first failure; it doubles with each further one. Until it ends, no other worker takes
 * the claim.
 */
const FIRST_PAUSE_MS = START_TIMEOUT_MS + 2_000;
const LOG_EVERY_MS = 10_000;

interface SweepDependencies {
  orm: Orm;
  client: Client;
  taskQueue: string;
  config: Pick<Config, 'issuanceDeadlineMs' | 'topUpDeadlineMs' | 'withdrawalDeadlineMs'>;
  logger: Logger;
}

export interface Sweep {
  /** Starts what is due, until nothing more is or it is told to stop. */
  pass(stopping: AbortSignal): Promise<void>;
  /** Waits for the starts that are under way, because a slow one doesn't hold up the next pass. */
  settle(): Promise<void>;
}

/**
 * Starts the workflows of abandoned claims: if a claim without a response has an expired lease, its process
 * died. Starting a workflow that is running changes nothing, so a claim is started again every minute until
 * it has a response. A claim that can't be started delays no other.
 */
export function startSweep(dependencies: SweepDependencies): Pick<Repetition, 'stop'> {
  const { pass, settle } = createSweep(dependencies);
  const sweep = repeat('the sweep of abandoned claims', INTERVAL_MS, dependencies.logger, pass);
  return {
    stop: async () => {
      await sweep.stop();
      await settle();
    },
  };
}

/** The sweep's passes, for one caller after the other. */
export function createSweep(dependencies: SweepDependencies, now = Date.now): Sweep {
  const { orm, logger } = dependencies;
  const underWay = new Set<Promise<void>>();
  const tally = createTally(logger, now);

  async function pass(stopping: AbortSignal): Promise<void> {
    let wanted = 0;
    let taken: AbandonedClaim[] = [];
    do {
      while (underWay.size === STARTS_AT_ONCE) await Promise.race(underWay);
      wanted = STARTS_AT_ONCE - underWay.size;
      const taking = { operations: WORKFLOW_OPERATIONS, limit: wanted, leaseMs: FIRST_PAUSE_MS };
      taken = await transaction(orm, (tx) => takeAbandonedClaims(tx, taking));
      for (const claim of taken) {
        const start = startOne(dependencies, tally, claim).finally(() => underWay.delete(start));
        underWay.add(start);
      }
      tally.log();
    } while (taken.length === wanted && !stopping.aborted);
  }
  return { pass, settle: async () => void (await Promise.all(underWay)) };
}

/** Never throws: the result is counted, and the claim gets its next turn anyway. */
async function startOne(dependencies: SweepDependencies, tally: Tally, claim: AbandonedClaim): Promise<void> {
  const { orm, client, taskQueue, config } = dependencies;
  try {
    const workflow = claimedWorkflow(claim, taskQueue, config);
    await asPartOf({ requestId: claim.request_id }, () =>
      client.withDeadline(Date.now() + START_TIMEOUT_MS, () => startClaimed(client, workflow)),
    );
    tally.start();
    await putClaimOff(orm, { claimId: claim.id, pauseMs: MAX_PAUSE_MS });
  } catch (error) {
    tally.fail(claim.id, error);
    // This says nothing about the claim, which should get its turn soon after Temporal is back.
    if (isTemporalAway(error)) return;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (claim.attempts - 1), MAX_PAUSE_MS);
    await putClaimOff(orm, { claimId: claim.id, pauseMs }).catch((another: unknown) =>
      tally.fail(claim.id, another),
    );
  }
}

type Tally = ReturnType<typeof createTally>;

/** What the sweep did, in one line for many claims. */
function createTally(logger: Logger, now: () => number) {
  let [started, failed, loggedAtMs] = [0, 0, 0];
  let example: { claimId: string; error: DescribedError } | undefined;
  return {
    start(): void {
      started += 1;
    },
    fail(claimId: string, error: unknown): void {
      failed += 1;
      // The client's error only names the call; its cause has the server's message.
      const { cause } = error as { cause?: unknown };
      example ??= { claimId, error: describeError(cause ?? error) };
    },
    log(): void {
      const nowMs = now();
      if (nowMs < loggedAtMs + LOG_EVERY_MS || started + failed === 0) return;
      if (started > 0) logger.info({ claims: started }, 'restarted the abandoned work of claims');
      if (failed > 0) {
        logger.error(
          { claims: failed, ...example },
          'the sweep of abandoned claims could not restart some of them; trying again within a minute',
        );
      }
      [started, failed, loggedAtMs] = [0, 0, nowMs];
      example = undefined;
    },
  };
}
