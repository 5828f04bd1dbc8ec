import type { Logger } from 'pino';
import { renewLease } from '../commands/claim-response.ts';
import type { Orm } from '../db/orm.ts';
import { describeError } from '../domain/describe-error.ts';

/** How long a claim counts as alive without a sign of life, and how often one is given. */
export const LEASE_MS = 5_000;
const RENEWAL_MS = 2_000;

/**
 * Runs the work of a claim and gives signs of life meanwhile. Where the work fails, the lease ends with it: a retry need
 * not wait for it to run out.
 */
export async function whileLeased<T>(
  { orm, logger }: { orm: Orm; logger: Logger },
  claimId: string,
  work: () => Promise<T>,
): Promise<T> {
  // A sign that can't be given is no reason to stop: should the lease run out, a retry joins the same operation.
  const renew = (leaseMs: number) =>
    renewLease(orm, claimId, leaseMs).catch((error: unknown) =>
      logger.warn({ claimId, error: describeError(error) }, 'the lease of a claim could not be renewed'),
    );
  const renewal = setInterval(() => renew(LEASE_MS), RENEWAL_MS);
  try {
    return await work();
  } catch (error) {
    clearInterval(renewal);
    await renew(0);
    throw error;
  } finally {
    clearInterval(renewal);
  }
}
