import { sql } from 'kysely';
import type { Logger } from 'pino';
import { Refusal, unknownId } from '../../domain/refusal.ts';
import { newId, readIdTime } from '../../platform/crypto/new-id.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement, type Transactor, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { type Operator, recordAudit } from '../../requests/operator-context.ts';
import { type CardNetwork, CardNetworkUnavailable } from '../card-network.ts';
import type { ReconciliationProblem } from './tables.ts';

/**
 * A card, a movement of money or a transaction about which our record and the card network's lists differ.
 */
export interface Finding {
  problem: Exclude<ReconciliationProblem, 'set_up'>;
  kind: 'card' | 'movement' | 'transaction';
  /** Our id; null if we have none. */
  id: string | null;
  /** The network's id; null if it has none. */
  issuerId: string | null;
  /** What differs, in words for an operator. */
  detail: string;
}

/** The same for a finding that is found again. */
export const findingKey = ({ problem, kind, id, issuerId, detail }: Finding): string =>
  JSON.stringify([problem, kind, id ?? '', issuerId ?? '', detail]);

/** Those that earlier runs found, dismissed ones included, by {@link findingKey}. */
export async function readKnownFindings(orm: Orm, network: string): Promise<Set<string>> {
  const rows = await known(orm.em.fork(), { network });
  return new Set(
    rows.map((row) => JSON.stringify([row.problem, row.kind, row.object_id, row.issuer_id, row.detail])),
  );
}

const known = readStatement((db, { network }: { network: string }) =>
  db
    .selectFrom('reconciliation_finding')
    .select(['problem', 'kind', 'object_id', 'issuer_id', 'detail'])
    .where('network', '=', network),
);

/** What time it is by the database, whose clock dates what is found. */
export async function readFindingTime(orm: Orm): Promise<Date> {
  const [row] = await databaseTime(orm.em.fork(), {});
  return new Date((row as { now: string }).now);
}

const databaseTime = readStatement(() => sql<{ now: string }>`SELECT clock_timestamp() AS now`);

/** After when everything was made that was found and nobody has dismissed; null if nothing was. */
export async function readOldestOpen(orm: Orm, network: string): Promise<Date | null> {
  const [row] = await oldestOpen(orm.em.fork(), { network });
  return row?.since == null ? null : new Date(row.since);
}

const oldestOpen = readStatement(
  (_, { network }: { network: string }) => sql<{ since: string | null }>`
    SELECT min(made_after) AS since FROM reconciliation_finding
    WHERE network = ${network} AND problem <> 'set_up' AND dismissed_at IS NULL`,
);

interface RunResult {
  network: string;
  findings: readonly Finding[];
  /** The period that the run compared begins here. */
  since: Date;
  /** By the database's clock. */
  startedAt: Date;
  /** Whether there were more than it could note. Then nothing ends. */
  isTruncated: boolean;
}

/** Replaces the findings of the runs before: those that this one covers and did not find have ended. */
export function recordFindings(orm: Orm, result: RunResult): Promise<void> {
  const { network, findings, since, startedAt, isTruncated } = result;
  return transaction(orm, async (tx) => {
    for (let from = 0; from < findings.length; from += MAX_AT_ONCE) {
      await recordSome(tx, network, since, findings.slice(from, from + MAX_AT_ONCE));
    }
    if (!isTruncated)
      await endOthers(tx, { network, since: since.toISOString(), startedAt: startedAt.toISOString() });
  });
}

const MAX_AT_ONCE = 1_000;

function recordSome(tx: Transactor, network: string, since: Date, findings: readonly Finding[]) {
  const rows = findings.map(({ problem, kind, id, issuerId, detail }) => {
    // Of ours in the period, when it was made; of all others, where the run began.
    const madeMs = Math.max(id === null ? 0 : readIdTime(id).getTime(), since.getTime());
    const about = { problem, kind, object_id: id ?? '', issuer_id: issuerId ?? '', detail };
    return { id: newId('rec'), ...about, made_after: new Date(madeMs).toISOString() };
  });
  return record(tx, { network, rows: JSON.stringify(rows) });
}

const record = writeStatement(
  (_, values: { network: string; rows: string }) => sql`
    INSERT INTO reconciliation_finding AS f (id, network, problem, kind, object_id, issuer_id, detail, made_after)
    SELECT n.id, ${values.network}::text, n.problem, n.kind, n.object_id, n.issuer_id, n.detail, n.made_after
    FROM jsonb_to_recordset(${values.rows}::jsonb)
      n (id text, problem text, kind text, object_id text, issuer_id text, detail text, made_after timestamptz)
    ORDER BY n.problem, n.kind, n.object_id, n.issuer_id, n.detail
    ON CONFLICT (network, problem, kind, object_id, issuer_id, detail) DO UPDATE
    SET last_found_at = clock_timestamp(), made_after = greatest(f.made_after, excluded.made_after)`,
);

// What only the network has, and what was looked at by its id, counts as made at a run's beginning, so that a
// run right afterwards covers it, too.
const endOthers = writeStatement(
  (_, values: { network: string; since: string; startedAt: string }) => sql`
    DELETE FROM reconciliation_finding
    WHERE network = ${values.network} AND problem <> 'set_up' AND last_found_at < ${values.startedAt}::timestamptz
      AND made_after > ${values.since}::timestamptz - interval '1 hour'`,
);

/**
 * Asks the network how it is set up and records what is wrong. If it can't be asked, that is recorded beside
 * what was wrong before.
 * @returns whether it could be asked
 */
export async function checkSetUp(
  orm: Orm,
  network: string,
  liveNetwork: Pick<CardNetwork, 'checkSetUp'>,
  logger: Logger,
): Promise<boolean> {
  let problems: string[];
  try {
    problems = await liveNetwork.checkSetUp();
  } catch (error) {
    if (!(error instanceof CardNetworkUnavailable)) throw error;
    logger.warn({ error: describeError(error) }, 'could not check how the card network is set up');
    await transaction(orm, (tx) => writeSetUp(tx, { network, details: [NOT_CHECKED], ids: [newId('rec')] }));
    return false;
  }
  await recordSetUp(orm, network, problems);
  return true;
}

const NOT_CHECKED =
  'How the issuer is set up could not be checked: the log says why. If it answers 401 or 403, see what the API key may do';

/** Replaces what is wrong with how a network is set up. Of other networks nothing is known any more. */
function recordSetUp(orm: Orm, network: string, problems: readonly string[]): Promise<void> {
  const details = [...new Set(problems.map((problem) => problem.slice(0, 1_000)))];
  return transaction(orm, async (tx) => {
    await writeSetUp(tx, { network, details, ids: details.map(() => newId('rec')) });
    await endSetUp(tx, { network, details });
  });
}

const writeSetUp = writeStatement(
  (_, values: { network: string; details: string[]; ids: string[] }) => sql`
    INSERT INTO reconciliation_finding (id, network, problem, kind, object_id, issuer_id, detail, made_after)
    SELECT n.id, ${values.network}::text, 'set_up', 'network', '', '', n.detail, clock_timestamp()
    FROM unnest(${values.ids}::text[], ${values.details}::text[]) n (id, detail) ORDER BY n.detail
    ON CONFLICT (network, problem, kind, object_id, issuer_id, detail) DO UPDATE SET last_found_at = clock_timestamp()`,
);

const endSetUp = writeStatement(
  (_, values: { network: string; details: string[] }) => sql`
    DELETE FROM reconciliation_finding
    WHERE problem = 'set_up' AND (network <> ${values.network} OR detail <> ALL (${values.details}::text[]))`,
);

/**
 * Records an operator's word that a finding needs nothing more. It is not shown again, unless what differs
 * changes.
 * @throws Refusal if there is none, or it was dismissed before
 */
export function dismissFinding({ orm, actor }: Operator, findingId: string, reason: string): Promise<void> {
  return transaction(orm, async (tx) => {
    const [finding] = await lock(tx, { findingId });
    if (finding === undefined) throw unknownId('rec', findingId, 'run "operator network findings"');
    if (finding.dismissed_at !== null) {
      throw new Refusal(
        `${findingId} was dismissed before: see "operator audit list --subject ${findingId}".`,
      );
    }
    if (finding.problem === 'set_up') {
      throw new Refusal(`${findingId} is about how the network is set up: it ends once that is right.`);
    }
    await dismiss(tx, { findingId });
    const { network, problem, kind, object_id: objectId, issuer_id: issuerId, detail } = finding;
    recordAudit(tx, {
      actor,
      action: 'network.dismiss',
      subject: findingId,
      detail: { network, problem, kind, objectId, issuerId, detail, reason },
    });
  });
}

const lock = writeStatement((db, { findingId }: { findingId: string }) =>
  db
    .selectFrom('reconciliation_finding')
    .select(['network', 'problem', 'kind', 'object_id', 'issuer_id', 'detail', 'dismissed_at'])
    .where('id', '=', findingId)
    .forUpdate(),
);

const dismiss = writeStatement((db, { findingId }: { findingId: string }) =>
  db
    .updateTable('reconciliation_finding')
    .set({ dismissed_at: sql`clock_timestamp()` })
    .where('id', '=', findingId),
);
