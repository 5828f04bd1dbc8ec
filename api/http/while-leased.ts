import type { Logger } from 'pino';
import { renewLease } from '../../commands/idempotency/claim.ts';
import type { Orm } from '../../db/orm.ts';
import { describeError } from '../../process/describe-error.ts';

/** How long a claim counts as alive without a sign of life, and how often one is given. */
export const LEASE_MS = 5_000;
const RENEWAL_MS = 1_000;

/**
 * Runs the work of a claim and gives signs of life meanwhile. Where the work fails, the lease ends with it: a retry need
 * not wait for it to run out.
 * @param work is told when a sign of life finds the claim answered, should every hint of that have got lost
 */
export async function whileLeased<T>(
  { orm, logger }: { orm: Orm; logger: Logger },
  claimId: string,
  work: (foundAnswered: Promise<'answered'>) => Promise<T>,
): Promise<T> {
  // A sign that can't be given is no reason to stop: should the lease run out, a retry joins the same operation.
  const renew = async (leaseMs: number) => {
    try {
      if (!(await renewLease(orm, claimId, leaseMs))) found.resolve('answered');
    } catch (error) {
      logger.warn({ claimId, error: describeError(error) }, "could not renew a claim's lease");
    }
  };
  const found = Promise.withResolvers<'answered'>();
  const renewal = setInterval(() => renew(LEASE_MS), RENEWAL_MS);
  try {
    return await work(found.promise);
  } catch (error) {
    clearInterval(renewal);
    await renew(0);
    throw error;
  } finally {
    clearInterval(renewal);
  }
}
