import { sql } from 'kysely';
import { lowestId } from '../../platform/crypto/new-id.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { ASYNCHRONOUS_COMMIT, autocommitStatement } from '../../platform/db/sql.ts';

/** What a network's list names: `transaction` is an element of a payment, `authorization` the payment. */
export type SeenKind = 'card' | 'movement' | 'transaction' | 'authorization';

const KEPT_MS = 86_400_000;
const DELETED_AT_ONCE = 5_000;

/** Notes what a run has seen in the network's lists. */
export async function noteSeen(
  orm: Orm,
  runId: string,
  kind: SeenKind,
  keys: readonly (string | null)[],
): Promise<void> {
  const named = keys.filter((key) => key !== null);
  if (named.length > 0) await note(orm, { runId, kind, keys: named });
}

// If a crash of PostgreSQL loses some, they seem to be missing at the network, and the run looks again before
// it says so.
const note = autocommitStatement(
  (_, { runId, kind, keys }: { runId: string; kind: SeenKind; keys: string[] }) => sql`
    WITH ${ASYNCHRONOUS_COMMIT}
    INSERT INTO reconciliation_seen (run_id, kind, key)
    SELECT DISTINCT ${runId}::text, ${kind}::text, k FROM asynchronous_commit, unnest(${keys}::text[]) k
    ON CONFLICT DO NOTHING`,
);

/** Deletes what a run has noted, and what runs that died have left behind. */
export async function forgetSeen(orm: Orm, runId: string): Promise<void> {
  const abandonedBefore = lowestId('rec', new Date(Date.now() - KEPT_MS));
  for (;;) {
    const deleted = await forget(orm, { runId, abandonedBefore });
    if (deleted.length < DELETED_AT_ONCE) return;
  }
}

const forget = autocommitStatement(
  (_, { runId, abandonedBefore }: { runId: string; abandonedBefore: string }) => sql<{ run_id: string }>`
    WITH ${ASYNCHRONOUS_COMMIT}
    DELETE FROM reconciliation_seen WHERE (run_id, kind, key) IN (
      SELECT run_id, kind, key FROM reconciliation_seen, asynchronous_commit
      WHERE run_id = ${runId} OR run_id < ${abandonedBefore} LIMIT ${sql.lit(DELETED_AT_ONCE)})
    RETURNING run_id`,
);
