import type { EntityManager } from '@mikro-orm/postgresql';
import { type Partner, PartnerEntity } from '../../db/entities/accounts.ts';
import { readStatement } from '../../db/sql.ts';
import { unknownId } from '../idempotency/refusal.ts';

/**
 * An account, locked against other operators' changes until the transaction ends; issuances are not held up by it.
 * @throws Refusal where there is none.
 */
export async function lockPartner(tx: EntityManager, partnerId: string): Promise<Partner> {
  await lock(tx, { partnerId });
  const partner = await tx.findOne(PartnerEntity, partnerId);
  if (partner === null) throw unknownId('prt', partnerId, 'run "operator partner list"');
  return partner;
}

const lock = readStatement((db, { partnerId }: { partnerId: string }) =>
  db.selectFrom('partner').select('id').where('id', '=', partnerId).forNoKeyUpdate(),
);
