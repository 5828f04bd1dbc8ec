import type { Orm } from '../../platform/db/orm.ts';
import { query } from '../../platform/db/sql.ts';

interface Database {
  orm: Orm;
}

/** The id of the card or top-up that a claim makes, whether or not it exists yet. */
export const resourceOf = (database: Database, claimId: string): Promise<string> =>
  one(database, 'SELECT resource_id AS id FROM idempotency_claim WHERE id = $1', claimId);

/** The id of the claim that makes this card or top-up. */
export const claimOf = (database: Database, resourceId: string): Promise<string> =>
  one(database, 'SELECT id FROM idempotency_claim WHERE resource_id = $1', resourceId);

async function one({ orm }: Database, statement: string, id: string): Promise<string> {
  const [row] = await query<{ id: string | null }>(orm.em.fork(), statement, [id]);
  if (!row?.id) throw new Error(`no claim belongs to ${id}`);
  return row.id;
}
