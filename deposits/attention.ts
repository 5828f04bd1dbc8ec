import { sql } from 'kysely';
import { type ChainName, MICRO_USDT_PER_CENT, usdt } from '../domain/deposit.ts';
import { MAX_LAG_SECONDS } from '../domain/scan-lag.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import { decisionCommands, type UnfinishedItem } from '../platform/monitoring/attention-item.ts';
import { scanChainWorkflowId, watchDepositWorkflowId } from '../workflows/messages.ts';
import { readScanStates, type ScanState } from './chain-scan.ts';

/** Payments in review, not confirmed or not processed, scans that are behind, and workflows that are out of date. */
export async function readWaitingDeposits(orm: Orm, taskQueuePrefix: string): Promise<UnfinishedItem[]> {
  const found = [
    await readInReview(orm),
    await readUnconfirmed(orm),
    await readUnagreed(orm),
    await readLateScans(orm, taskQueuePrefix),
    await readUnprocessedPayments(orm),
    await readOutdatedWorkflows(orm),
  ];
  return found.flat();
}

async function readInReview(orm: Orm): Promise<UnfinishedItem[]> {
  const rows = await inReview(orm.em.fork(), {});
  return rows.map(({ id, partner_id, version, since, count, ...row }) => ({
    kind: 'deposit',
    id,
    partner_id,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason:
      `${usdt(BigInt(row.amount_cents) * MICRO_USDT_PER_CENT, 2)} USDT expected; ` +
      `${usdt(BigInt(row.micro_usdt), 2)} USDT in ` +
      `${count === 1 ? 'one payment' : `${count} payments`} to review` +
      (row.is_denied ? '; the nodes disagree on a payment' : ''),
    ...decisionCommands(
      `deposit resolve ${id}`,
      ['--credit', '--returned'],
      `--if-version ${version} --reason "…"`,
    ),
    workflow_id: watchDepositWorkflowId(id),
  }));
}

const COUNT = sql<number>`count(*)::int`.as('count');

const inReview = readStatement(
  (db) =>
    db
      .selectFrom('deposit as d')
      .innerJoin('deposit_payment as p', 'p.deposit_id', 'd.id')
      .select([
        'd.id',
        'd.partner_id',
        'd.version',
        'd.amount_cents',
        sql<string>`d.review_since`.as('since'),
        COUNT,
      ])
      .select(({ fn }) => [
        sql<string>`${fn.sum('p.value_micro_usdt')}::text`.as('micro_usdt'),
        sql<boolean>`bool_or(p.review_reason = 'nodes_disagree')`.as('is_denied'),
      ])
      .where('d.status', '=', sql.lit('needs_review'))
      // Of test deposits, their partner settles it. A literal, for the partial index.
      .where('d.mode', '=', sql.lit('live'))
      .where('p.status', '=', 'in_review')
      .groupBy('d.id'),
  { acrossTenants: 'measurement' },
);

const CHECK_WORKER = {
  queue: 'deposits',
  absent: 'check that a worker with TRON_NETWORK is running',
  present: 'a worker is running, so see its log, and check that it reaches its nodes',
} as const;

/** A scan reports every time it reads the chain, which is every few seconds. */
const MAX_SILENCE_MS = 120_000;

/** Chains whose payments would be credited too late. */
async function readLateScans(orm: Orm, taskQueuePrefix: string): Promise<UnfinishedItem[]> {
  const scans = await readScanStates(orm.em.fork(), null);
  const unscanned = await unscannedChains(orm.em.fork(), {});
  return [
    ...scans.flatMap((scan) => lateScan(scan, taskQueuePrefix)),
    ...unscanned.map(({ network, since }) => ({
      ...scanItem(network, since, taskQueuePrefix),
      reason: 'addresses were given out, but the chain is not being scanned',
      worker: CHECK_WORKER,
      command: `temporal workflow describe --workflow-id ${scanChainWorkflowId(network, taskQueuePrefix)}`,
    })),
  ];
}

function lateScan(
  { network, lag, checkedAt, blockTime, nodes }: ScanState,
  taskQueuePrefix: string,
): UnfinishedItem[] {
  const isSilent = checkedAt !== null && Date.now() - checkedAt.getTime() > MAX_SILENCE_MS;
  if (!isSilent && (lag.seconds ?? 0) <= MAX_LAG_SECONDS) return [];
  const behind = `${lag.seconds ?? '?'} s${lag.blocks === null ? '' : ` and ${lag.blocks} blocks`} behind`;
  return [
    {
      ...scanItem(network, (isSilent ? checkedAt : blockTime) ?? new Date(), taskQueuePrefix),
      reason: isSilent
        ? `the scan has not reported and is ${behind}`
        : `the scan is ${behind}: ${problemsAt(nodes)}`,
      ...(isSilent && { worker: CHECK_WORKER }),
      command: `npm run operator -- tron status --network ${network}`,
    },
  ];
}

function problemsAt(nodes: ScanState['nodes']): string {
  const problems = nodes.flatMap(({ name, problem, says }) =>
    (says ?? problem) === null ? [] : [`${name}: ${says ?? problem}`],
  );
  return problems.length === 0 ? 'no node has reported a problem' : problems.join('; ');
}

const scanItem = (network: ChainName, since: string | Date, taskQueuePrefix: string) =>
  ({
    kind: 'chain_scan',
    id: network,
    since: new Date(since).toISOString(),
    partner_id: null,
    mode: 'live',
    or_command: null,
    workflow_id: scanChainWorkflowId(network, taskQueuePrefix),
  }) as const;

const unscannedChains = readStatement(
  (db) =>
    db
      .selectFrom('deposit as d')
      .select(({ fn }) => [sql<ChainName>`d.network`.as('network'), fn.min('d.created_at').as('since')])
      // A literal, for the partial index of deposits that can expire.
      .where('d.status', '=', sql.lit<'awaiting_payment'>('awaiting_payment'))
      .where('d.mode', '=', sql.lit('live'))
      .where('d.created_at', '<', sql<string>`now() - interval '2 minutes'`)
      .where(({ exists, not, selectFrom }) =>
        not(
          exists(selectFrom('chain_scan as s').select('s.network').whereRef('s.network', '=', 'd.network')),
        ),
      )
      .groupBy('d.network'),
  { acrossTenants: 'measurement' },
);

/** Workers normally do this within seconds, so anything older needs attention. */
const LONG_AGO = sql<string>`now() - interval '10 minutes'`;

const WHAT_SETTLES_IT =
  'It is credited by itself once TRON_CONFIRMING_NODES nodes agree: repair or replace the others in TRON_NODE_URLS';

/** Payments that too few nodes show, in a block that enough of them agree on. */
async function readUnconfirmed(orm: Orm): Promise<UnfinishedItem[]> {
  const rows = await unconfirmed(orm.em.fork(), {});
  return rows.map(({ deposit_id: id, partner_id, value_micro_usdt, block_number, says, seen_at }) => ({
    ...confirmationItem(id, partner_id, seen_at),
    reason:
      `too few nodes show a payment of ${usdt(BigInt(value_micro_usdt), 2)} USDT in block ${block_number}: ` +
      `${says.map((one) => `${one.node}: ${one.says}`).join('; ')}. ${WHAT_SETTLES_IT}`,
  }));
}

/** Payments in blocks that too few nodes agree on, or have. */
async function readUnagreed(orm: Orm): Promise<UnfinishedItem[]> {
  const rows = await unagreed(orm.em.fork(), {});
  return rows.map(({ id, partner_id, seen_block_number, nodes, changed_at }) => ({
    ...confirmationItem(id, partner_id, changed_at),
    reason:
      `a payment was seen in block ${seen_block_number}, and too few nodes agree on the blocks up to it: ` +
      `${nodes.map(({ name, state, problem, says }) => `${name}: ${says ?? problem ?? state}`).join('; ')}. ${WHAT_SETTLES_IT}`,
  }));
}

const confirmationItem = (depositId: string, partnerId: string, since: string) =>
  ({
    kind: 'deposit_confirmation',
    id: depositId,
    since: new Date(since).toISOString(),
    partner_id: partnerId,
    mode: 'live',
    command: `npm run operator -- deposit show ${depositId}`,
    or_command: null,
    workflow_id: watchDepositWorkflowId(depositId),
  }) as const;

/** How many of each of these two are listed, oldest first: one bad node can be behind any number of them. */
const MAX_CONFIRMATIONS = 100;

const unconfirmed = readStatement(
  (db) =>
    db
      .selectFrom('unconfirmed_payment')
      .select(['deposit_id', 'partner_id', 'value_micro_usdt', 'block_number', 'says', 'seen_at'])
      .where('seen_at', '<', LONG_AGO)
      .orderBy('seen_at')
      .limit(sql.lit(MAX_CONFIRMATIONS)),
  { acrossTenants: 'measurement' },
);

const unagreed = readStatement(
  (db) =>
    db
      .selectFrom('deposit as d')
      .innerJoin('chain_scan as s', 's.network', 'd.network')
      .select(['d.id', 'd.partner_id', 'd.seen_block_number', 'd.changed_at', 's.nodes'])
      // A literal, for the partial index.
      .where('d.status', '=', sql.lit<'confirming'>('confirming'))
      .where('d.changed_at', '<', LONG_AGO)
      .where(
        sql<boolean>`NOT EXISTS (SELECT FROM unconfirmed_payment u WHERE u.deposit_id = d.id)
        AND NOT EXISTS (SELECT FROM deposit_payment p WHERE p.deposit_id = d.id)`,
      )
      .orderBy('d.changed_at')
      .limit(sql.lit(MAX_CONFIRMATIONS)),
  { acrossTenants: 'measurement' },
);

/** Payments that were found but neither credited nor put into review: one item an account. */
async function readUnprocessedPayments(orm: Orm): Promise<UnfinishedItem[]> {
  const rows = await unprocessedPayments(orm.em.fork(), {});
  return rows.map(({ partner_id, count, since }) => ({
    kind: 'deposit_payment',
    id: partner_id,
    partner_id,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason: `${count} payments were found but are not credited`,
    worker: CHECK_WORKER,
    command: `npm run operator -- deposit list --partner ${partner_id}`,
    or_command: null,
    workflow_id: null,
  }));
}

const unprocessedPayments = readStatement(
  (db) =>
    db
      .selectFrom('deposit_payment')
      .select(({ fn }) => ['partner_id', COUNT, fn.min('found_at').as('since')])
      // A literal, for the partial index of payments that are not processed.
      .where('status', '=', sql.lit<'found'>('found'))
      .where('mode', '=', sql.lit('live'))
      .where('found_at', '<', LONG_AGO)
      .groupBy('partner_id'),
  { acrossTenants: 'measurement' },
);

/** Deposits whose workflows show an older state, which delays no money: one item an account. */
async function readOutdatedWorkflows(orm: Orm): Promise<UnfinishedItem[]> {
  const rows = await outdatedWorkflows(orm.em.fork(), {});
  return rows.map(({ partner_id, count, first, since }) => ({
    kind: 'deposit_workflow',
    id: partner_id,
    partner_id,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason: `the workflows of ${count} deposits could not be informed of their last change, which delays no credit`,
    worker: CHECK_WORKER,
    command: `temporal workflow describe --workflow-id ${watchDepositWorkflowId(first)}`,
    or_command: null,
    workflow_id: watchDepositWorkflowId(first),
  }));
}

const outdatedWorkflows = readStatement(
  (db) =>
    db
      .selectFrom('deposit')
      .select(({ fn }) => ['partner_id', COUNT, fn.min('id').as('first'), fn.min('changed_at').as('since')])
      .whereRef('told_version', '<', 'version')
      .where('changed_at', '<', LONG_AGO)
      .groupBy('partner_id'),
  { acrossTenants: 'measurement' },
);
