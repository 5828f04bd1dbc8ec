import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';
import { INVARIANTS } from './invariants.ts';

/** Most violations reported of each invariant: the first ones tell what is wrong. */
const MOST_EACH = 100;

export interface Violation {
  /** Its number in the design of the ledger, "Invariants". */
  invariant: number;
  /** What it was found on: an account, a transfer, an operation. */
  subject: string;
  message: string;
}

/**
 * Checks the invariants over the whole ledger, each in one statement, so each sees one moment of it and work may go
 * on meanwhile. PostgreSQL does the adding up; only violations come here.
 * @returns nothing where all hold. A violation is never repaired by changing rows: find the cause first.
 */
export async function checkLedger(em: EntityManager): Promise<Violation[]> {
  const violations: Violation[] = [];
  for (const { invariant, finds } of INVARIANTS) {
    const rows = await query<{ subject: string; message: string }>(
      em,
      `SELECT v.subject, v.message FROM (${finds}) v (subject, message) ORDER BY v.subject, v.message LIMIT $1`,
      [MOST_EACH],
    );
    violations.push(...rows.map((row) => ({ invariant, ...row })));
  }
  return violations;
}
