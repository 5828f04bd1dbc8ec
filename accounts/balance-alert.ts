import { sql } from 'kysely';
import type { Tenant } from '../domain/mode.ts';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement } from '../platform/db/sql.ts';

/**
 * Sets the threshold of an account's balance alert; null turns it off. If the balance is on the other side of it, this writes the
 * event (docs/decisions/balance-alerts.md).
 */
export async function setBalanceAlert(
  orm: Orm,
  { partnerId, mode }: Tenant,
  threshold: number | null,
): Promise<void> {
  await setAlert(orm, { partnerId, mode, threshold });
}

const setAlert = autocommitStatement(
  (_, { partnerId, mode, threshold }: Tenant & { threshold: number | null }) =>
    sql`SELECT ledger.set_alert(${partnerId}, ${mode}, ${threshold})`,
);
