import { sql } from 'kysely';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import type { ReconciliationProblem } from './tables.ts';

/** What the reconciliation with the card network found, and nobody has dismissed. */
interface OpenFinding {
  id: string;
  problem: ReconciliationProblem;
  kind: string;
  object_id: string | null;
  issuer_id: string | null;
  detail: string;
  since: string;
}

interface FindingFilter {
  /** Null for all. */
  problem: ReconciliationProblem | null;
  /** Those before this one; null from the newest. */
  before: string | null;
  limit: number;
}

/** Newest first. */
export async function readOpenFindings(orm: Orm, filter: FindingFilter): Promise<OpenFinding[]> {
  const rows = await open(orm.em.fork(), filter);
  return rows.map((row) => ({ ...row, since: new Date(row.since).toISOString() }));
}

const open = readStatement(
  (_, { problem, before, limit }: FindingFilter) => sql<OpenFinding>`
    SELECT id, problem, kind, nullif(object_id, '') AS object_id, nullif(issuer_id, '') AS issuer_id, detail,
      first_found_at AS since
    FROM reconciliation_finding
    WHERE dismissed_at IS NULL AND (${problem}::text IS NULL OR problem = ${problem}::text)
      AND (${before}::text IS NULL OR id < ${before}::text)
    ORDER BY id DESC LIMIT ${limit}`,
);
