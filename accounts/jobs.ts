import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Mode, Tenant } from '../domain/mode.ts';
import { SHOWN_KEY } from '../platform/db/columns.ts';
import { followingAccounts } from '../platform/db/following-accounts.ts';
import { notifyEvents } from '../platform/db/notifications.ts';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement, readStatement, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { type Repetition, repeat } from '../platform/process/repeat.ts';
import { asAccount, asService } from '../platform/process/work-context.ts';
import { newEvent, writeEvent } from '../requests/event.ts';
import { type ApiKeyRow, presentKeyInEvent } from './api-key-resource.ts';
import { accountsNow, holdClock, KEY_ANNOUNCED_AHEAD } from './clock.ts';

const INTERVAL_MS = 1_000;
const MAX_FOUND = 100;

interface Dependencies {
  orm: Orm;
  logger: Logger;
}

export const startAnnouncingKeys = (dependencies: Dependencies): Repetition =>
  repeat('announcing keys that expire', INTERVAL_MS, dependencies.logger, () =>
    announceExpiringKeys(dependencies),
  );

/**
 * Writes `api_key.expiring` for keys that expire within seven days. Those of an outage are found as any
 * others.
 */
export async function announceExpiringKeys({ orm, logger }: Dependencies): Promise<void> {
  const found = await asService('keys', () => findExpiringKeys(orm.em.fork(), { limit: MAX_FOUND }));
  let announced = 0;
  for (const { id, partner_id: partnerId, mode } of found) {
    const tenant = { partnerId, mode };
    try {
      if (await asAccount(tenant, () => announceExpiry(orm, tenant, id))) announced++;
    } catch (error) {
      logger.error({ keyId: id, error: describeError(error) }, 'could not announce that a key expires');
    }
  }
  if (announced > 0) await notifyEvents(orm);
}

const TO_ANNOUNCE = sql`expires_at IS NOT NULL AND revoked_at IS NULL AND expiry_announced_at IS NULL`;

interface ExpiringKey {
  id: string;
  partner_id: string;
  mode: Mode;
}

/**
 * Finds keys that expire within seven days and have not been announced, those of an account in order;
 * accounts take turns.
 */
const findExpiringKeys = readStatement(
  (_, { limit }: { limit: number }) => sql<ExpiringKey>`
    WITH RECURSIVE ${followingAccounts({ table: 'api_key', account: ['partner_id', 'mode'], isQueued: TO_ANNOUNCE, after: sql`'', ''` })}
    SELECT d.id, d.partner_id, d.mode
    FROM ${accountsNow(sql`SELECT partner_id, mode FROM following`)} f CROSS JOIN LATERAL (
      SELECT k.id, k.partner_id, k.mode, row_number() OVER (ORDER BY k.expires_at) AS turn
      FROM api_key k WHERE k.partner_id = f.partner_id AND k.mode = f.mode AND ${TO_ANNOUNCE}
        AND k.expires_at <= f.now + ${KEY_ANNOUNCED_AHEAD}
      ORDER BY k.expires_at LIMIT ${limit}) d
    ORDER BY d.turn LIMIT ${limit}`,
  { acrossTenants: 'queue' },
);

/** Writes `api_key.expiring` for a key, once. @returns whether it did so now */
function announceExpiry(orm: Orm, { partnerId, mode }: Tenant, id: string): Promise<boolean> {
  return transaction(orm, async (tx) => {
    const clock = await holdClock(tx, { partnerId, mode });
    const [key] = await takeForAnnouncement(tx, { partnerId, mode, id });
    if (key === undefined) return false;
    const data = { api_key: presentKeyInEvent(key) };
    await writeEvent(tx, { partnerId, mode }, newEvent({ type: 'api_key.expiring', mode, data, clock }));
    return true;
  });
}

const takeForAnnouncement = writeStatement(
  (_, { partnerId, mode, id }: Tenant & { id: string }) => sql<ApiKeyRow>`
  UPDATE api_key k SET expiry_announced_at = account_now(k.partner_id, k.mode)
  WHERE k.id = ${id} AND k.partner_id = ${partnerId} AND k.mode = ${mode} AND ${TO_ANNOUNCE}
    AND k.expires_at <= account_now(k.partner_id, k.mode) + ${KEY_ANNOUNCED_AHEAD}
  RETURNING ${SHOWN_KEY}`,
);

/**
 * Adds committed entries of the audit log to its hash chain (docs/decisions/audit-chain.md). If another
 * process is doing so, it does nothing.
 * @returns how many entries it took, at most `batch`
 */
export async function chainAudit(orm: Orm, batch: number): Promise<number> {
  const [row] = await chain(orm, { batch });
  return row?.taken ?? 0;
}

const chain = autocommitStatement(
  (_, { batch }: { batch: number }) => sql<{ taken: number }>`SELECT chain_audit(${batch}) AS taken`,
);
