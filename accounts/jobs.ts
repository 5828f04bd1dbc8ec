import type { Logger } from 'pino';
import { notifyEvents } from '../platform/db/notifications.ts';
import type { Orm } from '../platform/db/orm.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { type Repetition, repeat } from '../platform/process/repeat.ts';
import { asAccount, asService } from '../platform/process/work-context.ts';
import { announceExpiry, findExpiringKeys } from './expiring-keys.ts';

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

/** Writes `api_key.expiring` for keys that expire within seven days. Those of an outage are found as any others. */
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
