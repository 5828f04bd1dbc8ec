import type { EntityManager } from '@mikro-orm/postgresql';
import { topUpColumns } from '../db/columns.ts';
import { query } from '../db/sql.ts';
import type { TopUpRow } from '../domain/topup-resource.ts';

/** A top-up's row, locked until the transaction ends; undefined where there is none. Its card is locked before it. */
export async function lockTopUp(tx: EntityManager, topUpId: string): Promise<TopUpRow | undefined> {
  const [topUp] = await query<TopUpRow>(
    tx,
    `SELECT ${topUpColumns('t')} FROM topup t WHERE t.id = $1 FOR NO KEY UPDATE`,
    [topUpId],
  );
  return topUp;
}
