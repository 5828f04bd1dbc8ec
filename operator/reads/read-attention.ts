import { type Expression, sql } from 'kysely';
import type { OperatorConfig } from '../../config/operator.ts';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import type { CardStatus } from '../../domain/card-status.ts';
import type { TopUpStatus } from '../../domain/topup.ts';
import type { AttentionItem } from './attention-item.ts';
import { readGivenUp } from './read-given-up.ts';
import { readWaitingDeposits } from './read-waiting-deposits.ts';
import { readWaitingStatusChanges } from './read-waiting-status-changes.ts';

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
  overdue: ReturnType<typeof overdueIn>;
  reason: string;
  command(id: string): string;
}

const MILLISECOND = sql`interval '1 millisecond'`;
const ago = (ms: number) => sql<string>`now() - ${ms} * ${MILLISECOND}`;
const later = (time: Expression<string>, ms: number) => sql<string>`${time} + ${ms} * ${MILLISECOND}`;

const overdueIn = (table: 'card' | 'topup', pending: CardStatus | TopUpStatus) =>
  readStatement((db, { deadlineMs }: { deadlineMs: number }) =>
    db
      .selectFrom(table)
      .select(({ eb, fn, ref }) => [
        'id',
        eb('overdue_since', 'is not', null).as('flagged'),
        sql<string | null>`CASE WHEN NOT decision ? 'refused' THEN decision ->> 'outcome' END`.as('decided'),
        fn.coalesce('overdue_since', later(ref('created_at'), deadlineMs)).as('since'),
      ])
      // In the text, so that the partial index of what is pending can be used.
      .where('status', '=', sql.lit(pending))
      .where(({ eb, or }) =>
        or([eb('overdue_since', 'is not', null), eb('created_at', '<', ago(deadlineMs))]),
      ),
  );

const ISSUANCES: PendingRows = {
  kind: 'card_issuance',
  overdue: overdueIn('card', 'funding_pending'),
  reason: 'the network has not said whether it issued the card',
  command: (id) => `npm run operator -- card resolve ${id} --issued|--failed --reason R`,
};
const TOP_UPS: PendingRows = {
  kind: 'card_topup',
  overdue: overdueIn('topup', 'pending'),
  reason: 'the network has not said whether it loaded the card',
  command: (id) => `npm run operator -- topup resolve ${id} --succeeded|--failed --reason R`,
};
const notCarriedOut = (outcome: string) =>
  `an operator decided that it is ${outcome}, but no worker has applied that yet: check that a worker is running`;
const UNNOTICED = 'past its deadline, but its workflow has not noticed: check that a worker is running';

async function readOverdue(
  orm: Orm,
  { kind, overdue, reason, command }: PendingRows,
  deadlineMs: number,
): Promise<AttentionItem[]> {
  const rows = await overdue(orm.em.fork(), { deadlineMs });
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
  const rows = await withoutNetworkId(orm.em.fork(), {});
  return rows.map(({ id, since }) => ({
    kind: 'card_network_id',
    id,
    since: new Date(since).toISOString(),
    reason:
      "the card is in use, but its id at the network is not known, so it can't be frozen, blocked or topped up",
    command: `npm run operator -- card resolve ${id} --issued --network-card-id N --reason R`,
  }));
}

const withoutNetworkId = readStatement((db) =>
  db
    .selectFrom('card')
    .select(['id', 'created_at as since'])
    // As the partial index has it.
    .where('mode', '=', sql.lit('live'))
    .where('status', 'in', [sql.lit<CardStatus>('active'), sql.lit<CardStatus>('frozen')])
    .where(({ eb, or }) => or([eb('network_card_id', 'is', null), eb('last4', 'is', null)]))
    .where('network_card_id', 'is', null),
);

/** How long a request may stay without an answer, though it is started again every minute. */
const PATIENCE_MS = 600_000;

/** Accounts with issuances or top-ups that were asked for and have not begun, so that no money is held. */
async function readNotBegun(orm: Orm): Promise<AttentionItem[]> {
  const rows = await notBegun(orm.em.fork(), { patienceMs: PATIENCE_MS });
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

/** What a claim makes has the claim's id but for its prefix. */
const idOf = (prefix: 'card' | 'topup') => sql<string>`${sql.lit(prefix)} || substr(${sql.ref('c.id')}, 6)`;

const notBegun = readStatement((db, { patienceMs }: { patienceMs: number }) =>
  db
    .selectFrom('idempotency_claim as c')
    .select(({ fn }) => [
      'c.partner_id',
      'c.mode',
      sql<number>`count(*)::int`.as('count'),
      later(fn.min('c.created_at'), patienceMs).as('since'),
    ])
    .where('c.response_status', 'is', null)
    .where('c.operation', 'in', ['create_card', 'top_up_card'])
    .where('c.created_at', '<', ago(patienceMs))
    .where(({ exists, not, selectFrom }) =>
      not(exists(selectFrom('card as k').select('k.id').where('k.id', '=', idOf('card')))),
    )
    .where(({ exists, not, selectFrom }) =>
      not(exists(selectFrom('topup as t').select('t.id').where('t.id', '=', idOf('topup')))),
    )
    .groupBy(['c.partner_id', 'c.mode']),
);
