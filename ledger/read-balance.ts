import type { EntityManager } from '@mikro-orm/postgresql';
import { readStatement } from '../db/sql.ts';
import type { Mode } from '../domain/mode.ts';
import { accountId } from './account-id.ts';
import { balanceOf } from './balance.ts';
import type { Balance } from './operation.ts';

/** The partner's prepaid balance in one mode: zeros where nothing has touched it yet. */
export async function readBalance(em: EntityManager, partnerId: string, mode: Mode): Promise<Balance> {
  const [row] = await account(em, { id: accountId('prepaid', partnerId, mode) });
  return balanceOf(row?.posted ?? '0', row?.held ?? '0');
}

const account = readStatement((db, { id }: { id: string }) =>
  db.selectFrom('ledger.account').select(['posted', 'held']).where('id', '=', id),
);
