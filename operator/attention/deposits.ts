import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { query, readStatement } from '../../db/sql.ts';
import { MICRO_USDT_PER_CENT, type TronNetwork, usdt } from '../../domain/deposit.ts';
import { LONGEST_LAG_SECONDS } from '../../domain/scan-lag.ts';
import { scanChainWorkflowId, watchDepositWorkflowId } from '../../workflows/messages.ts';
import { readScans, type ScanResource } from '../reads/chain-scans.ts';
import type { AttentionItem } from './attention-item.ts';

/** Everything about deposits that waits for a person. */
export async function readWaitingDeposits(orm: Orm, taskQueuePrefix: string): Promise<AttentionItem[]> {
  const found = await Promise.all([
    readInReview(orm),
    readLate(orm, taskQueuePrefix),
    readUncredited(orm),
    readUntold(orm),
  ]);
  return found.flat();
}

/** Payments that were found for a deposit and that nobody has decided on. */
async function readInReview(orm: Orm): Promise<AttentionItem[]> {
  const rows = await query<{
    id: string;
    version: number;
    review_since: string;
    count: number;
    micro_usdt: string;
    amount_micro_usdt: string;
    is_denied: boolean;
  }>(orm.em.fork(), IN_REVIEW);
  return rows.map(({ id, version, review_since, count, ...row }) => ({
    kind: 'deposit',
    id,
    since: new Date(review_since).toISOString(),
    reason:
      `${usdt(BigInt(row.amount_micro_usdt), 2)} USDT expected; ${usdt(BigInt(row.micro_usdt), 2)} USDT in ` +
      `${count === 1 ? 'one payment' : `${count} payments`} to review` +
      (row.is_denied ? '; the nodes disagree on a payment' : ''),
    command: `npm run operator -- deposit resolve ${id} --credit|--returned --if-version ${version} --reason R`,
  }));
}

const IN_REVIEW = `
  SELECT d.id, d.version, d.review_since, d.amount_cents * ${MICRO_USDT_PER_CENT}::numeric AS amount_micro_usdt,
    waiting.*
  FROM deposit d CROSS JOIN LATERAL (
    SELECT count(*)::int AS count, sum(p.value_micro_usdt)::text AS micro_usdt,
      bool_or(p.review_reason = 'nodes_disagree') AS is_denied
    FROM deposit_payment p WHERE p.deposit_id = d.id AND p.status = 'in_review') waiting
  WHERE d.status = 'needs_review'`;

/** How long a scan may say nothing; it does so with every look at the chain. */
const LONGEST_SILENCE_MS = 120_000;

/** Chains that are read too late for a payment to be credited in time. */
async function readLate(orm: Orm, taskQueuePrefix: string): Promise<AttentionItem[]> {
  const [scans, unread] = await Promise.all([
    readScans(orm, taskQueuePrefix),
    unreadChains(orm.em.fork(), {}),
  ]);
  return [
    ...scans.flatMap((scan) => lateItem(scan)),
    ...unread.map(({ network, since }) => ({
      ...itemOf(network, since),
      reason:
        'addresses were given out, but the chain is not being scanned: check that a worker with TRON_NETWORK is running and reaches a node',
      command: `temporal workflow describe --workflow-id ${scanChainWorkflowId(network, taskQueuePrefix)}`,
    })),
  ];
}

function lateItem(scan: ScanResource): AttentionItem[] {
  const { network, lag_seconds: lagSeconds, checked_at: checkedAt, block_time: blockTime } = scan;
  const isSilent = checkedAt !== null && Date.now() - Date.parse(checkedAt) > LONGEST_SILENCE_MS;
  if (!isSilent && (lagSeconds ?? 0) <= LONGEST_LAG_SECONDS) return [];
  return [
    {
      ...itemOf(network, (isSilent ? checkedAt : blockTime) ?? new Date()),
      reason: isSilent
        ? `the scan has not reported and is ${behind(scan)}: check that a worker with TRON_NETWORK is running`
        : `the scan is ${behind(scan)}: ${problemsOf(scan)}`,
      command: `npm run operator -- tron status --network ${network}`,
    },
  ];
}

const behind = ({ lag_seconds: seconds, lag_blocks: blocks }: ScanResource): string =>
  `${seconds ?? '?'} s${blocks === null ? '' : ` and ${blocks} blocks`} behind`;

function problemsOf({ nodes }: ScanResource): string {
  const problems = nodes.flatMap(({ name, problem }) => (problem === null ? [] : [`${name}: ${problem}`]));
  return problems.length === 0 ? 'no node has reported a problem' : problems.join('; ');
}

const itemOf = (network: TronNetwork, since: string | Date) =>
  ({ kind: 'chain_scan', id: network, since: new Date(since).toISOString() }) as const;

const unreadChains = readStatement((db) =>
  db
    .selectFrom('deposit as d')
    .select(({ fn }) => ['d.network', fn.min('d.created_at').as('since')])
    // In the text, so that the partial index of what can expire can be used.
    .where('d.status', '=', sql.lit<'awaiting_payment'>('awaiting_payment'))
    .where('d.created_at', '<', sql<string>`now() - interval '2 minutes'`)
    .where(({ exists, not, selectFrom }) =>
      not(exists(selectFrom('chain_scan as s').select('s.network').whereRef('s.network', '=', 'd.network'))),
    )
    .groupBy('d.network'),
);

/** How long what takes seconds may take. */
const PATIENCE = sql`interval '10 minutes'`;

/** Accounts with payments that were found and that no worker has judged. */
async function readUncredited(orm: Orm): Promise<AttentionItem[]> {
  const rows = await uncredited(orm.em.fork(), {});
  return rows.map(({ partner_id, count, since }) => ({
    kind: 'deposit_payment',
    id: partner_id,
    since: new Date(since).toISOString(),
    reason: `${count} payments were found but are not credited: check that a worker is running, and see its log`,
    command: `npm run operator -- deposit list --partner ${partner_id}`,
  }));
}

const LONG_AGO = sql<string>`now() - ${PATIENCE}`;
const COUNT = sql<number>`count(*)::int`;

const uncredited = readStatement((db) =>
  db
    .selectFrom('deposit_payment')
    .select(({ fn }) => ['partner_id', COUNT.as('count'), fn.min('found_at').as('since')])
    // In the text, as the partial index has it.
    .where('status', '=', sql.lit<'found'>('found'))
    .where('found_at', '<', LONG_AGO)
    .groupBy('partner_id'),
);

/** Accounts with deposits whose workflows do not know how they stand. No money waits for that. */
async function readUntold(orm: Orm): Promise<AttentionItem[]> {
  const rows = await untold(orm.em.fork(), {});
  return rows.map(({ partner_id, count, first, since }) => ({
    kind: 'deposit_workflow',
    id: partner_id,
    since: new Date(since).toISOString(),
    reason:
      `the workflows of ${count} deposits could not be informed of their last change, which delays no credit: check that ` +
      'a worker with TRON_NETWORK is running and reaches Temporal, and see its log',
    command: `temporal workflow describe --workflow-id ${watchDepositWorkflowId(first)}`,
  }));
}

const untold = readStatement((db) =>
  db
    .selectFrom('deposit')
    .select(({ fn }) => [
      'partner_id',
      COUNT.as('count'),
      fn.min('id').as('first'),
      fn.min('changed_at').as('since'),
    ])
    .whereRef('told_version', '<', 'version')
    .where('changed_at', '<', LONG_AGO)
    .groupBy('partner_id'),
);
