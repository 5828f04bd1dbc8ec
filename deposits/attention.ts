import { sql } from 'kysely';
import {
  type ChainName,
  MICRO_USDT_PER_CENT,
  type ReviewReason,
  usdt,
  WHY_IN_REVIEW,
} from '../domain/deposit.ts';
import { isoTime } from '../domain/iso-time.ts';
import { MAX_LAG_SECONDS } from '../domain/scan-lag.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import {
  type AttentionKind,
  decisionCommands,
  type UnfinishedItem,
} from '../platform/monitoring/attention-item.ts';
import { scanChainWorkflowId, watchDepositWorkflowId } from '../workflows/messages.ts';
import { readScanStates, type ScanState } from './chain-scan.ts';

/**
 * Payments in review, not confirmed or not processed, scans that are behind, and workflows that are out of
 * date.
 */
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
  return rows.map(({ id, version, count, expected, arrived, reasons, ...row }) => ({
    ...liveItem('deposit', id, row),
    reason:
      `${usdt(BigInt(expected) * MICRO_USDT_PER_CENT, 2)} USDT expected; ${usdt(BigInt(arrived), 2)} USDT in ` +
      `${count === 1 ? 'one payment' : `${count} payments`} to review: ` +
      reasons.map((reason) => WHY_IN_REVIEW[reason]).join('; '),
    ...decisionCommands(
      `deposit resolve ${id}`,
      ['--credit', '--returned'],
      `--if-version ${version} --reason "…"`,
    ),
    workflow_id: watchDepositWorkflowId(id),
  }));
}

interface Found {
  partner_id: string;
  since: string;
}

/** What items of live deposits have in common. */
const liveItem = (
  kind: AttentionKind,
  id: string,
  { partner_id, since }: { partner_id: string | null; since: string | Date },
) =>
  ({
    kind,
    id,
    partner_id,
    mode: 'live',
    since: isoTime(since),
    or_command: null,
    workflow_id: null,
  }) as const;

// Of test deposits, their partner settles it. Status and mode are literals, for the partial index.
const inReview = readStatement(
  () => sql<
    Found & {
      id: string;
      version: number;
      expected: string;
      arrived: string;
      count: number;
      reasons: ReviewReason[];
    }
  >`
    SELECT d.id, d.partner_id, d.version, d.amount_cents AS expected, d.review_since AS since,
      count(*)::int AS count,
      sum(p.value_micro_usdt)::text AS arrived,
      array_agg(DISTINCT p.review_reason ORDER BY p.review_reason) AS reasons
    FROM deposit d JOIN deposit_payment p ON p.deposit_id = d.id
    WHERE d.status = 'needs_review' AND d.mode = 'live' AND p.status = 'in_review' GROUP BY d.id`,
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

const scanItem = (network: ChainName, since: string | Date, taskQueuePrefix: string) => ({
  ...liveItem('chain_scan', network, { partner_id: null, since }),
  workflow_id: scanChainWorkflowId(network, taskQueuePrefix),
});

// The status is a literal, for the partial index of deposits that can expire.
const unscannedChains = readStatement(
  () => sql<{ network: ChainName; since: string }>`
    SELECT d.network, min(d.created_at) AS since FROM deposit d
    WHERE d.status = 'awaiting_payment' AND d.mode = 'live' AND d.created_at < now() - interval '2 minutes'
      AND NOT EXISTS (SELECT FROM chain_scan s WHERE s.network = d.network)
    GROUP BY d.network`,
  { acrossTenants: 'measurement' },
);

/** Workers normally do this within seconds, so anything older needs attention. */
const LONG_AGO = sql<string>`now() - interval '10 minutes'`;

const WHAT_SETTLES_IT =
  'It is credited by itself once TRON_CONFIRMING_NODES nodes agree: repair or replace the others in TRON_NODE_URLS';

/** Payments that too few nodes show, in a block that enough of them agree on. */
async function readUnconfirmed(orm: Orm): Promise<UnfinishedItem[]> {
  const rows = await unconfirmed(orm.em.fork(), {});
  return rows.map(({ id, value_micro_usdt, block_number, says, ...row }) => ({
    ...confirmationItem(id, row),
    reason:
      `too few nodes show a payment of ${usdt(BigInt(value_micro_usdt), 2)} USDT in block ${block_number}: ` +
      `${says.map((one) => `${one.node}: ${one.says}`).join('; ')}. ${WHAT_SETTLES_IT}`,
  }));
}

/** Payments in blocks that too few nodes agree on, or have. */
async function readUnagreed(orm: Orm): Promise<UnfinishedItem[]> {
  const rows = await unagreed(orm.em.fork(), {});
  return rows.map(({ id, seen_block_number, nodes, ...row }) => ({
    ...confirmationItem(id, row),
    reason:
      `a payment was seen in block ${seen_block_number}, and too few nodes agree on the blocks up to it: ` +
      `${nodes.map(({ name, state, problem, says }) => `${name}: ${says ?? problem ?? state}`).join('; ')}. ${WHAT_SETTLES_IT}`,
  }));
}

const confirmationItem = (depositId: string, found: Found) => ({
  ...liveItem('deposit_confirmation', depositId, found),
  command: `npm run operator -- deposit show ${depositId}`,
  workflow_id: watchDepositWorkflowId(depositId),
});

/** How many of each of these two are listed, oldest first: one bad node can be behind any number of them. */
const MAX_CONFIRMATIONS = sql.lit(100);

const unconfirmed = readStatement(
  () => sql<
    Found & {
      id: string;
      value_micro_usdt: string;
      block_number: string;
      says: { node: string; says: string }[];
    }
  >`
    SELECT deposit_id AS id, partner_id, value_micro_usdt, block_number, says, seen_at AS since
      FROM unconfirmed_payment
    WHERE seen_at < ${LONG_AGO} ORDER BY seen_at LIMIT ${MAX_CONFIRMATIONS}`,
  { acrossTenants: 'measurement' },
);

// The status is a literal, for the partial index.
const unagreed = readStatement(
  () => sql<Found & { id: string; seen_block_number: string; nodes: ScanState['nodes'] }>`
    SELECT d.id, d.partner_id, d.seen_block_number, d.changed_at AS since, s.nodes
    FROM deposit d JOIN chain_scan s ON s.network = d.network
    WHERE d.status = 'confirming' AND d.changed_at < ${LONG_AGO}
      AND NOT EXISTS (SELECT FROM unconfirmed_payment u WHERE u.deposit_id = d.id)
      AND NOT EXISTS (SELECT FROM deposit_payment p WHERE p.deposit_id = d.id)
    ORDER BY d.changed_at LIMIT ${MAX_CONFIRMATIONS}`,
  { acrossTenants: 'measurement' },
);

/** Payments that were found but neither credited nor put into review: one item an account. */
async function readUnprocessedPayments(orm: Orm): Promise<UnfinishedItem[]> {
  const rows = await unprocessedPayments(orm.em.fork(), {});
  return rows.map(({ count, ...row }) => ({
    ...liveItem('deposit_payment', row.partner_id, row),
    reason: `${count} payments were found but are not credited`,
    worker: CHECK_WORKER,
    command: `npm run operator -- deposit list --partner ${row.partner_id}`,
  }));
}

// Status and mode are literals, for the partial index of payments that are not processed.
const unprocessedPayments = readStatement(
  () => sql<Found & { count: number }>`
    SELECT partner_id, count(*)::int AS count, min(found_at) AS since FROM deposit_payment
    WHERE status = 'found' AND mode = 'live' AND found_at < ${LONG_AGO} GROUP BY partner_id`,
  { acrossTenants: 'measurement' },
);

/** Deposits whose workflows show an older state, which delays no money: one item an account. */
async function readOutdatedWorkflows(orm: Orm): Promise<UnfinishedItem[]> {
  const rows = await outdatedWorkflows(orm.em.fork(), {});
  return rows.map(({ count, first, ...row }) => ({
    ...liveItem('deposit_workflow', row.partner_id, row),
    reason: `the workflows of ${count} deposits could not be informed of their last change, which delays no credit`,
    worker: CHECK_WORKER,
    command: `temporal workflow describe --workflow-id ${watchDepositWorkflowId(first)}`,
    workflow_id: watchDepositWorkflowId(first),
  }));
}

const outdatedWorkflows = readStatement(
  () => sql<Found & { count: number; first: string }>`
    SELECT partner_id, count(*)::int AS count, min(id) AS first, min(changed_at) AS since FROM deposit
    WHERE told_version < version AND changed_at < ${LONG_AGO} GROUP BY partner_id`,
  { acrossTenants: 'measurement' },
);
