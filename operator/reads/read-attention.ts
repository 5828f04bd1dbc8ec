import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import type { OperatorConfig } from '../../operator-config.ts';
import { readGivenUp } from './read-given-up.ts';
import { readWaitingDeposits } from './read-waiting-deposits.ts';
import { readWaitingStatusChanges } from './read-waiting-status-changes.ts';

/** Something that waits for a person, and the command that settles it. */
export interface AttentionItem {
  kind:
    | 'card_issuance'
    | 'card_topup'
    | 'card_status_change'
    | 'card_network_id'
    | 'request'
    | 'webhook'
    | 'deposit'
    | 'deposit_payment'
    | 'deposit_workflow'
    | 'chain_scan';
  id: string;
  since: string;
  reason: string;
  command: string;
}

/** How long a network may take; and what workflows' ids have, if it is set. */
export type AttentionSettings = Pick<
  OperatorConfig,
  'issuanceDeadlineMs' | 'topUpDeadlineMs' | 'taskQueuePrefix'
>;

/** Longest waiting first. */
export async function readAttention(orm: Orm, settings: AttentionSettings): Promise<AttentionItem[]> {
  const found = await Promise.all([
    readOverdue(orm, ISSUANCES, settings.issuanceDeadlineMs),
    readOverdue(orm, TOP_UPS, settings.topUpDeadlineMs),
    readWaitingStatusChanges(orm),
    readWithoutNetworkId(orm),
    readNotBegun(orm),
    readGivenUp(orm),
    readWaitingDeposits(orm, settings.taskQueuePrefix),
  ]);
  return found.flat().sort((a, b) => (`${a.since} ${a.id}` < `${b.since} ${b.id}` ? -1 : 1));
}

/** Rows that wait for the network. */
interface PendingRows {
  kind: AttentionItem['kind'];
  table: 'card' | 'topup';
  pending: string;
  reason: string;
  command(id: string): string;
}

const ISSUANCES: PendingRows = {
  kind: 'card_issuance',
  table: 'card',
  pending: 'funding_pending',
  reason: 'the network has not said whether it issued the card',
  command: (id) => `npm run operator -- card resolve ${id} --issued|--failed --reason R`,
};
const TOP_UPS: PendingRows = {
  kind: 'card_topup',
  table: 'topup',
  pending: 'pending',
  reason: 'the network has not said whether it loaded the card',
  command: (id) => `npm run operator -- topup resolve ${id} --succeeded|--failed --reason R`,
};
const notCarriedOut = (outcome: string) =>
  `an operator decided that it is ${outcome}, but no worker has applied that yet: check that a worker is running`;
const UNNOTICED = 'past its deadline, but its workflow has not noticed: check that a worker is running';

async function readOverdue(
  orm: Orm,
  { kind, table, pending, reason, command }: PendingRows,
  deadlineMs: number,
): Promise<AttentionItem[]> {
  const rows = await query<{ id: string; flagged: boolean; decided: string | null; since: string }>(
    orm.em.fork(),
    `SELECT id, overdue_since IS NOT NULL AS flagged,
       CASE WHEN NOT decision ? 'refused' THEN decision ->> 'outcome' END AS decided,
       coalesce(overdue_since, created_at + $1 * interval '1 millisecond') AS since
     FROM ${table}
     WHERE status = '${pending}'
       AND (overdue_since IS NOT NULL OR created_at < now() - $1 * interval '1 millisecond')`,
    [deadlineMs],
  );
  return rows.map(({ id, flagged, decided, since }) => ({
    kind,
    id,
    since: new Date(since).toISOString(),
    reason: decided === null ? (flagged ? reason : UNNOTICED) : notCarriedOut(decided),
    command: command(id),
  }));
}

/** Active cards that the network can't be told anything about; workers ask for their ids every ten minutes. */
async function readWithoutNetworkId(orm: Orm): Promise<AttentionItem[]> {
  const rows = await query<{ id: string; since: string }>(
    orm.em.fork(),
    `SELECT id, created_at AS since FROM card
     WHERE mode = 'live' AND status IN ('active', 'frozen') AND (network_card_id IS NULL OR last4 IS NULL)
       AND network_card_id IS NULL`,
  );
  return rows.map(({ id, since }) => ({
    kind: 'card_network_id',
    id,
    since: new Date(since).toISOString(),
    reason:
      "the card is in use, but its id at the network is not known, so it can't be frozen, blocked or topped up",
    command: `npm run operator -- card resolve ${id} --issued --network-card-id N --reason R`,
  }));
}

/** How long a request may stay without an answer, though it is started again every minute. */
const PATIENCE_MS = 600_000;

/** Accounts with issuances or top-ups that were asked for and have not begun, so that no money is held. */
async function readNotBegun(orm: Orm): Promise<AttentionItem[]> {
  const rows = await query<{ partner_id: string; mode: string; count: number; since: string }>(
    orm.em.fork(),
    `SELECT c.partner_id, c.mode, count(*)::int AS count, min(c.created_at) + $1 * interval '1 millisecond' AS since
     FROM idempotency_claim c
     WHERE c.response_status IS NULL AND c.operation IN ('create_card', 'top_up_card')
       AND c.created_at < now() - $1 * interval '1 millisecond'
       AND NOT EXISTS (SELECT FROM card k WHERE k.id = 'card' || substr(c.id, 6))
       AND NOT EXISTS (SELECT FROM topup t WHERE t.id = 'topup' || substr(c.id, 6))
     GROUP BY c.partner_id, c.mode`,
    [PATIENCE_MS],
  );
  return rows.map(({ partner_id, mode, count, since }) => ({
    kind: 'request',
    id: partner_id,
    since: new Date(since).toISOString(),
    reason:
      `${count} requests for cards or top-ups (${mode}) have not started, and nothing is held for them: see the ` +
      "worker's log, or their workflows, for the reason",
    command: `temporal workflow list --query 'PartnerId = "${partner_id}" AND ExecutionStatus = "Running"'`,
  }));
}
