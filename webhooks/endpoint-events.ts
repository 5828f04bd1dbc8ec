import { sql } from 'kysely';
import { holdClock } from '../accounts/clock.ts';
import type { AccountClock } from '../domain/account-clock.ts';
import type { Tenant } from '../domain/mode.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { newEvent, writeEvent } from '../requests/event.ts';
import { presentEndpointForOthers, type WebhookEndpointRow } from './endpoint-resource.ts';
import { shownEndpointColumns } from './reads.ts';

/** So many failed attempts in a row are an event. */
export const FAILING_AFTER = 10;
/** How many endpoints one call tells about. */
const BATCH = 100;

/**
 * Writes an event about an endpoint, which goes to the account's other endpoints.
 * @param testClock from `holdClock`, before the transaction locked any row
 */
export async function writeEndpointEvent(
  tx: Transactor,
  type: 'webhook_endpoint.failing' | 'webhook_endpoint.disabled',
  endpoint: WebhookEndpointRow,
  testClock: AccountClock,
): Promise<void> {
  const { partner_id: partnerId, mode, id: endpointId } = endpoint;
  const data = { webhook_endpoint: presentEndpointForOthers(endpoint) };
  const clock = mode === 'test' ? testClock : null;
  await writeEvent(
    tx,
    { partnerId, mode },
    { ...newEvent({ type, mode, data, clock }), except_endpoint_id: endpointId },
  );
}

/**
 * Writes an event about each endpoint of which ten attempts in a row have failed, once until it succeeds
 * again. The record of the attempts has marked them, so nothing is lost with a process, or if an endpoint has
 * succeeded since.
 * @returns how many, and the errors of those that it could not write, which stay marked
 */
export async function tellOfFailing(orm: Orm): Promise<{ told: number; errors: unknown[] }> {
  const failing = await findFailing(orm.em.fork(), { batch: BATCH });
  let told = 0;
  const errors: unknown[] = [];
  for (const { id: endpointId, partner_id: partnerId, mode } of failing) {
    try {
      told += await transaction(orm, async (tx) => {
        const testClock = await holdClock(tx, { partnerId, mode });
        const [endpoint] = await markTold(tx, { partnerId, mode, endpointId });
        if (endpoint === undefined) return 0;
        await writeEndpointEvent(tx, 'webhook_endpoint.failing', endpoint, testClock);
        return 1;
      });
    } catch (error) {
      errors.push(error);
    }
  }
  return { told, errors };
}

const findFailing = readStatement(
  (db, { batch }: { batch: number }) =>
    db
      .selectFrom('webhook_endpoint')
      .select(['id', 'partner_id', 'mode'])
      // A literal, so that the partial index can be used.
      .where('failing_owed', '=', sql.lit(true))
      .limit(sql<number>`${batch}`),
  { acrossTenants: 'queue' },
);

const markTold = writeStatement((db, { partnerId, mode, endpointId }: Tenant & { endpointId: string }) =>
  db
    .updateTable('webhook_endpoint')
    .set({ failing_owed: false })
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('id', '=', endpointId)
    .where('failing_owed', '=', true)
    .returning(shownEndpointColumns),
);
