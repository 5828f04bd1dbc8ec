import type { EntityManager } from '@mikro-orm/postgresql';
import { TOPUP_COLUMNS } from '../../db/columns.ts';
import { readStatement } from '../../db/sql.ts';
import type { TopUpRow } from '../../resources/topup.ts';

/** A top-up's row, locked until the transaction ends; undefined where there is none. Its card is locked before it. */
export async function lockTopUp(tx: EntityManager, topUpId: string): Promise<TopUpRow | undefined> {
  const [topUp] = await lock(tx, { topUpId });
  return topUp;
}

const lock = readStatement((db, { topUpId }: { topUpId: string }) =>
  db.selectFrom('topup').select(TOPUP_COLUMNS).where('id', '=', topUpId).forNoKeyUpdate(),
);
