import { z } from 'zod';
import { ChainName, type DepositDecision, DepositStatus, type WhyNotResolved } from '../domain/deposit.ts';
import { Refusal } from '../domain/refusal.ts';
import { WrongUsage } from '../operator/errors.ts';
import { Text, WholeNumber } from '../operator/flag-values.ts';
import type { Session } from '../operator/session.ts';
import {
  argument,
  flag,
  list,
  type Noun,
  needed,
  oneOf,
  reason,
  show,
  toggle,
  verb,
} from '../operator/verbs.ts';
import { notifyDeposits, notifyEvents } from '../platform/db/notifications.ts';
import { scanChainWorkflowId } from '../workflows/messages.ts';
import { readScanStates, rescanFrom } from './chain-scan.ts';
import { type DepositDetail, readDeposit, readDeposits } from './reads.ts';
import { resolveDeposit } from './resolve.ts';

export const depositNoun: Noun = {
  list: list({
    about: 'deposit addresses and what arrived at them, newest first',
    takes: {
      status: flag('<status>', 'only those with this status', oneOf(DepositStatus.options)),
      partner: flag('<id>', 'only those of this partner', Text(100)),
    },
    examples: ['--status needs_review', '--partner prt_01k0… --limit 1000'],
    columns: 'created id partner_name status amount received_amount credited_amount expires_at',
    read: readDeposits,
    note: 'See all of one with "operator deposit show ID".',
  }),

  show: show({
    about: 'a deposit, its payments and why they are in review, the decisions on it, and its workflow',
    id: 'of the deposit',
    example: 'dep_01k0…',
    async read(orm, id, { session }) {
      const deposit = await readDeposit(orm, id);
      return { ...deposit, workflow_status: await session.workflowStatus(deposit.workflow_id) };
    },
  }),

  resolve: verb({
    about: 'resolve the payments in review ("attention list" has them), once you have seen them on the chain',
    takes: {
      id: argument('of the deposit'),
      credit: toggle('credit what arrived and is not credited yet, rounded down to a cent', 'returned'),
      returned: toggle('it was sent back, or should not be credited: the balance does not change'),
      reason: reason('how you know, for the audit log'),
      ifVersion: flag(
        '<number>',
        'only if the deposit still has this version, as "deposit show" gives it; needed with --returned if several payments are in review',
        WholeNumber(z.number().min(1).max(2_147_483_647)),
      ),
    },
    examples: [
      'dep_01k0… --credit --if-version 3 --reason "the partner sent it in two parts, ticket 4711"',
      'dep_01k0… --returned --reason "sent back in transaction 7c1f…, ticket 4712"',
    ],
    async run({ id, credit, returned, reason, ifVersion }, { session }) {
      if (!credit && !returned) throw new WrongUsage('give --credit or --returned');
      const { deposit: value, creditedCents } = await resolve(session, id, {
        outcome: credit ? 'credited' : 'returned',
        reason,
        version: ifVersion ?? undefined,
      });
      const done = credit ? `${creditedCents} cents were added to the balance` : 'Nothing was credited';
      return { value, note: `${done}; the deposit is ${value.status}.` };
    },
  }),
};

/**
 * Resolves the payments of a deposit that are in review. A worker tells its workflow, as it does of every
 * change.
 * @returns the deposit as it is then
 * @throws Refusal if nothing is in review, the deposit has changed, or the payments can't be credited.
 */
async function resolve(
  session: Session,
  depositId: string,
  decision: DepositDecision,
): Promise<{ deposit: DepositDetail; creditedCents: number }> {
  const orm = await session.orm();
  const verdict = await resolveDeposit(await session.operator(), { depositId, ...decision });
  // Refuses an unknown id.
  const deposit = await readDeposit(orm, depositId);
  if (verdict === null || !verdict.resolved)
    throw new Refusal(`Nothing was changed. ${whyNot(deposit, verdict?.because ?? 'nothing_in_review')}`);
  if (verdict.repeated)
    throw new Refusal(`You have already resolved ${depositId} this way; nothing was changed.`);
  await notifyEvents(orm);
  await notifyDeposits(orm);
  return { deposit, creditedCents: verdict.creditedCents };
}

function whyNot({ id, status, version }: DepositDetail, because: WhyNotResolved): string {
  switch (because) {
    case 'nothing_in_review':
      return `${id} has no payment in review, it is ${status}: see "operator deposit show ${id}".`;
    case 'changed_meanwhile':
      return `${id} has changed and is now at version ${version}: check it with "operator deposit show ${id}", then decide again.`;
    case 'version_needed':
      return (
        `${id} has more than one payment in review: see "operator deposit show ${id}", and give --if-version ${version} ` +
        'if you have sent all of them back.'
      );
    case 'below_a_cent':
      return (
        `Less than a cent of what arrived for ${id} is not credited yet. Use --returned: the payment stays recorded, and ` +
        'nothing is owed.'
      );
    case 'past_the_largest_balance':
      return 'The balance would exceed its maximum: send the payment back, and use --returned.';
    case 'unreadable_reason':
      return 'The reason must be 1 to 500 characters on one line.';
  }
}

const NETWORK = flag(
  '<name>',
  'mainnet, nile, shasta or private (default: TRON_NETWORK, or else the only one scanned so far)',
  oneOf(ChainName.options),
);

export const tronNoun: Noun = {
  status: verb({
    about: 'how far the chain has been scanned, how far behind the scan is, and the state of the nodes',
    takes: { network: NETWORK },
    examples: ['', '--network mainnet --json'],
    async run({ network }, { session }) {
      const scan = await readScan(session, network);
      return { value: { ...scan, workflow_status: await session.workflowStatus(scan.workflow_id) } };
    },
  }),

  rescan: verb({
    about: 'scan the chain again from a block on; payments found before are not changed',
    takes: {
      from: needed(
        '<block>',
        'the first block to scan again',
        WholeNumber(z.number().min(1, 'must be at least 1')),
      ),
      network: NETWORK,
    },
    examples: ['--from 70123456'],
    async run({ from: fromBlock, network: named }, { session }) {
      const { network } = await readScan(session, named);
      const { cameTo } = await rescanFrom(await session.operator(), { network, fromBlock });
      return {
        value: await readScan(session, network),
        note: `The scan was at block ${cameTo}. Nothing already credited changes.`,
      };
    },
  }),
};

/**
 * How far a chain has been scanned: the one that `--network`, else TRON_NETWORK, names; if neither does, the
 * only one.
 * @throws Refusal if the chain has not been scanned yet, or there are several and none is named.
 */
async function readScan({ config, orm }: Session, named: ChainName | null) {
  const wanted = named ?? config.tronNetwork;
  const states = await readScanStates((await orm()).em.fork(), null);
  const [scan, another] = states.filter(({ network }) => wanted === null || network === wanted);
  if (scan === undefined) {
    throw new Refusal(
      `${wanted === null ? 'No chain has' : `${wanted} has not`} been scanned yet: a worker with TRON_NETWORK that reaches a node starts the scan once ` +
        'the first deposit address has been given out.',
    );
  }
  if (another !== undefined) {
    const known = states.map(({ network }) => network).join(', ');
    throw new Refusal(`Several chains have been scanned (${known}): choose one with --network.`);
  }
  return {
    object: 'chain_scan',
    network: scan.network,
    /** The last block that was scanned; it has no time right after `tron rescan`. */
    block: scan.blockNumber,
    block_time: scan.blockTime?.toISOString() ?? null,
    /** The newest solid block that a node has reported. */
    solid_block: scan.solidBlockNumber,
    lag_blocks: scan.lag.blocks,
    lag_seconds: scan.lag.seconds,
    /** The node that the last block came from. */
    node: scan.node,
    nodes: scan.nodes,
    /** When the scan last reported. */
    checked_at: scan.checkedAt?.toISOString() ?? null,
    workflow_id: scanChainWorkflowId(scan.network, config.taskQueuePrefix),
  };
}
