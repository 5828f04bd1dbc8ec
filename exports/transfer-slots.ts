import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import type { Tenant } from '../domain/mode.ts';
import { hasPassed } from '../platform/db/has-passed.ts';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement } from '../platform/db/sql.ts';
import { asService } from '../platform/process/work-context.ts';

/** How many reports an account can transfer at a time in each mode, in all processes. */
const SLOTS = [1, 2];
/** Three renewals can fail before a lease is lost. */
const RENEW_MS = 7_000;

interface TransferSlot {
  /** Aborted if the lease was lost, because the process was frozen or cut off for too long. */
  lost: AbortSignal;
  release(): Promise<void>;
}

/**
 * Takes one of the account's slots, and renews its lease until it is released.
 * @throws ApiError `rate_limited` if none is free
 */
export async function takeTransferSlot(orm: Orm, { partnerId, mode }: Tenant): Promise<TransferSlot> {
  const id = randomUUID();
  const slot = await takeFreeSlot(orm, { partnerId, mode }, id);
  const lost = new AbortController();
  const held = { partnerId, mode, slot, id };
  const renewal = setInterval(() => {
    asService('reports', async () => {
      try {
        const [row] = await renew(orm, held);
        if (row === undefined) lost.abort(new Error('the lease of a report was lost'));
      } catch {
        // The next renewal tries again.
      }
    });
  }, RENEW_MS);
  return {
    lost: lost.signal,
    async release() {
      clearInterval(renewal);
      // If this fails, the lease expires by itself.
      await asService('reports', () => free(orm, held)).catch(() => {});
    },
  };
}

async function takeFreeSlot(orm: Orm, tenant: Tenant, id: string): Promise<number> {
  for (const slot of SLOTS) {
    const [taken] = await take(orm, { ...tenant, slot, id });
    if (taken !== undefined) return slot;
  }
  throw new ApiError('rate_limited', {
    message:
      'Two reports of this account are being downloaded in this mode already. Finish one of them, or retry after the number of ' +
      'seconds in Retry-After.',
    retryAfterSeconds: 5,
  });
}

type Held = Tenant & { slot: number; id: string };

const take = autocommitStatement(
  (_, { partnerId, mode, slot, id }: Held) => sql<{ slot: number }>`
    INSERT INTO report_transfer AS t (partner_id, mode, slot, id, leased_until)
    VALUES (${partnerId}, ${mode}, ${slot}, ${id}, now() + interval '30 seconds')
    ON CONFLICT (partner_id, mode, slot) DO UPDATE SET id = excluded.id, leased_until = excluded.leased_until
      WHERE ${hasPassed('t.leased_until', 60_000)}
    RETURNING slot`,
);

const renew = autocommitStatement(
  (_, { partnerId, mode, slot, id }: Held) => sql<{ slot: number }>`
    UPDATE report_transfer SET leased_until = now() + interval '30 seconds'
    WHERE partner_id = ${partnerId} AND mode = ${mode} AND slot = ${slot} AND id = ${id} RETURNING slot`,
);

const free = autocommitStatement(
  (_, { partnerId, mode, slot, id }: Held) => sql`
    DELETE FROM report_transfer WHERE partner_id = ${partnerId} AND mode = ${mode}
      AND slot = ${slot} AND id = ${id}`,
);
