import { sql } from 'kysely';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement } from '../platform/db/sql.ts';

/**
 * Adds committed entries of the audit log to its hash chain (docs/decisions/audit-chain.md). If another process is doing so, it
 * does nothing.
 * @returns how many entries it took, at most `batch`
 */
export async function chainAudit(orm: Orm, batch: number): Promise<number> {
  const [row] = await chain(orm, { batch });
  return row?.taken ?? 0;
}

const chain = autocommitStatement(
  (_, { batch }: { batch: number }) => sql<{ taken: number }>`SELECT chain_audit(${batch}) AS taken`,
);
