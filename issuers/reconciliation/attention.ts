import { sql } from 'kysely';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import type { UnfinishedItem } from '../../platform/monitoring/attention-item.ts';
import { SEE_LOG } from '../../platform/monitoring/worker-check.ts';
import type { ReconciliationProblem } from './tables.ts';

/** If more than this have the same problem, they share one line. */
const MAX_SINGLE = 20;

/**
 * How our record and the card network's lists differ, what is wrong with how it is set up, and whether they
 * have been compared at all.
 * @param cardNetwork CARD_NETWORK
 */
export async function readReconciliation(orm: Orm, cardNetwork: string): Promise<UnfinishedItem[]> {
  const em = orm.em.fork();
  const rows = await findings(em, { maxSingle: MAX_SINGLE });
  const items = rows.map(toItem);
  const [late] = cardNetwork === 'none' ? [] : await lastRun(em, {});
  return late === undefined ? items : [...items, lateItem(late.since)];
}

const WHAT_TO_DO: Record<Exclude<ReconciliationProblem, 'set_up'>, string> = {
  missing_here:
    'Find out who made it: the issuer shows who asked for it. If it is not ours, have it closed or sent back there',
  missing_at_issuer: 'Ask the issuer what became of it',
  different:
    'See both sides, and correct the one that is wrong: ours with "card block", "partner adjust" or "transaction book"',
};

function toItem({
  id,
  network,
  problem,
  kind,
  object_id,
  issuer_id,
  detail,
  count,
  since,
}: FindingRow): UnfinishedItem {
  const item = {
    partner_id: null,
    mode: 'live' as const,
    since: new Date(since).toISOString(),
    or_command: null,
    workflow_id: null,
  };
  if (problem === 'set_up') {
    return {
      ...item,
      kind: 'network_setup',
      id: id ?? network,
      reason: `${detail}. It ends with the next check, at the start of a worker and once a day`,
      command: 'npm run operator -- network reconcile',
    };
  }
  const isNotBooked = problem === 'missing_here' && kind === 'transaction';
  const todo = isNotBooked
    ? "It could not be booked: see the worker's log. The next run tries again"
    : WHAT_TO_DO[problem];
  if (id === null) {
    return {
      ...item,
      kind: 'network_difference',
      id: problem,
      reason: `${count} of the kind "${kind}" ${MANY[problem]}. ${todo}`,
      command: `npm run operator -- network findings --problem ${problem}`,
    };
  }
  const ids = [
    object_id === '' ? [] : `ours: ${object_id}`,
    issuer_id === '' ? [] : `the issuer's: ${issuer_id}`,
  ];
  return {
    ...item,
    kind: 'network_difference',
    id,
    reason: `${detail}${problem === 'missing_at_issuer' ? ', and the issuer does not list it' : ''} (${ids.flat().join(', ')}). ${todo}`,
    command: `npm run operator -- network dismiss ${id} --reason "…"`,
  };
}

const MANY: Record<Exclude<ReconciliationProblem, 'set_up'>, string> = {
  missing_here: 'are at the issuer and not here',
  missing_at_issuer: 'are here and not at the issuer',
  different: 'are not the same here and at the issuer',
};

function lateItem(since: string): UnfinishedItem {
  return {
    kind: 'network_reconciliation',
    id: 'reconciliation',
    partner_id: null,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason:
      'our record and the card network have not been compared for two days, which a worker does every night',
    worker: SEE_LOG,
    command: 'npm run operator -- network reconcile',
    or_command: null,
    workflow_id: null,
  };
}

interface FindingRow {
  /** Null for a line that stands for all of the problem and kind. */
  id: string | null;
  network: string;
  problem: ReconciliationProblem;
  kind: string;
  object_id: string;
  issuer_id: string;
  detail: string;
  count: number;
  since: string;
}

const findings = readStatement(
  (_, { maxSingle }: { maxSingle: number }) => sql<FindingRow>`
    WITH open AS MATERIALIZED (SELECT * FROM reconciliation_finding WHERE dismissed_at IS NULL),
    counted AS (
      SELECT network, problem, kind, count(*)::int AS count, min(first_found_at) AS since FROM open GROUP BY 1, 2, 3
    )
    SELECT o.id, o.network, o.problem, o.kind, o.object_id, o.issuer_id, o.detail, n.count, o.first_found_at AS since
    FROM counted n JOIN open o USING (network, problem, kind) WHERE n.count <= ${maxSingle}
    UNION ALL
    SELECT NULL, network, problem, kind, '', '', '', count, since FROM counted WHERE count > ${maxSingle}`,
);

const lastRun = readStatement(
  () => sql<{ since: string }>`
    SELECT coalesce(measured_at, created_at) AS since FROM measurement
    WHERE name = 'reconciliation' AND coalesce(measured_at, created_at) < now() - interval '50 hours'`,
);
