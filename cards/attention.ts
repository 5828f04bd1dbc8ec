import { type Expression, sql } from 'kysely';
import { type CardStatus, STATUS_CHANGES, type StatusChangeOperation } from '../domain/card-status.ts';
import type { NotRecorded } from '../domain/decision.ts';
import type { Mode } from '../domain/mode.ts';
import {
  TRANSFER_DIRECTIONS,
  type TransferDeadlines,
  type TransferDirection,
  transferDeadlineMs,
} from '../domain/transfer.ts';
import { networkProblem } from '../platform/db/columns.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import {
  type AttentionItem,
  atIssuer,
  decisionCommands,
  type UnfinishedItem,
} from '../platform/monitoring/attention-item.ts';
import { CHECK_WORKER, SEE_LOG } from '../platform/monitoring/worker-check.ts';
import {
  changeCardStatusWorkflowId,
  issueCardWorkflowId,
  STATUS_CHANGE_PATIENCE_MS,
  transferWorkflowId,
} from '../workflows/messages.ts';
import type { DecidedTable } from './decision.ts';
import type { TransferStatus } from './transfers/rules.ts';

/**
 * Issuances, transfers and status changes that take too long, and cards in use under an id that the network
 * does not confirm.
 */
export async function readWaitingOperations(
  orm: Orm,
  deadlines: TransferDeadlines & { issuanceDeadlineMs: number },
): Promise<UnfinishedItem[]> {
  const found = [await readOverdue(orm, 'card', deadlines.issuanceDeadlineMs)];
  for (const direction of TRANSFER_DIRECTIONS)
    found.push(await readOverdue(orm, direction, transferDeadlineMs(deadlines, direction)));
  found.push(await readStatusChanges(orm), await readUnconfirmed(orm), await readNotStarted(orm));
  return found.flat();
}

const MILLISECOND = sql`interval '1 millisecond'`;
const ago = (durationMs: number) => sql<string>`now() - ${durationMs} * ${MILLISECOND}`;
const later = (time: Expression<string>, durationMs: number) =>
  sql<string>`${time} + ${durationMs} * ${MILLISECOND}`;

const overdueIn = (
  table: DecidedTable,
  pendingStatus: CardStatus | TransferStatus,
  direction?: TransferDirection,
) =>
  readStatement(
    (db, { deadlineMs }: { deadlineMs: number }) =>
      db
        .selectFrom(table)
        .select(({ eb, fn, ref }) => [
          'id',
          'partner_id',
          eb('overdue_since', 'is not', null).as('flagged'),
          sql<string | null>`CASE WHEN NOT decision ? 'refused' THEN decision ->> 'outcome' END`.as(
            'decided',
          ),
          'not_recorded',
          sql<string>`${sql.ref(table === 'card' ? 'funding_cents' : 'amount_cents')}`.as('cents'),
          sql<string | null>`asked ->> 'networkCardId'`.as('network_card_id'),
          networkProblem(table),
          fn
            .coalesce(
              'overdue_since',
              sql<string | null>`(not_recorded ->> 'at')::timestamptz`,
              later(ref('created_at'), deadlineMs),
            )
            .as('since'),
        ])
        // A literal, for the partial index of pending rows.
        .where('status', '=', sql.lit(pendingStatus))
        .where(direction === undefined ? sql<boolean>`true` : sql<boolean>`direction = ${sql.lit(direction)}`)
        .where(({ eb, or }) =>
          or([
            eb('overdue_since', 'is not', null),
            eb('created_at', '<', ago(deadlineMs)),
            eb('not_recorded', 'is not', null),
          ]),
        ),
    { acrossTenants: 'measurement' },
  );

const REASON = '--reason "…"';

type PendingKind = 'card' | TransferDirection;

const OVERDUE = {
  card: {
    kind: 'card_issuance',
    overdue: overdueIn('card', 'funding_pending'),
    outcomes: ['--issued', '--failed'],
    reason: 'the network has not said whether it issued the card',
  },
  topup: {
    kind: 'card_topup',
    overdue: overdueIn('card_transfer', 'pending', 'topup'),
    outcomes: ['--succeeded', '--failed'],
    reason: 'the network has not said whether it loaded the card',
  },
  withdrawal: {
    kind: 'card_withdrawal',
    overdue: overdueIn('card_transfer', 'pending', 'withdrawal'),
    outcomes: ['--succeeded', '--failed'],
    reason: 'the network has not said whether it took the money off the card',
  },
} as const satisfies Record<PendingKind, object>;

const NOT_FLAGGED = {
  reason: 'past its deadline, but its workflow has not noticed',
  worker: {
    ...CHECK_WORKER,
    present: 'it was terminated, or began with a longer deadline; the commands work all the same',
  },
} as const;
const notApplied = (outcome: string) => ({
  reason: `an operator decided that it is ${outcome}, but no worker has applied that yet`,
  worker: SEE_LOG,
});

async function readOverdue(orm: Orm, pending: PendingKind, deadlineMs: number): Promise<UnfinishedItem[]> {
  const { kind, overdue, outcomes, reason } = OVERDUE[pending];
  const rows = await overdue(orm.em.fork(), { deadlineMs });
  return rows.map(({ id, partner_id, flagged, decided, since, not_recorded, ...row }) => {
    const item = {
      kind,
      id,
      partner_id,
      mode: 'live' as const,
      since: new Date(since).toISOString(),
      at_issuer: atIssuer({
        amountCents: row.cents,
        token: id,
        card: row.network_card_id ?? not_recorded?.networkCardId ?? null,
      }),
      workflow_id: pending === 'card' ? issueCardWorkflowId(id) : transferWorkflowId(pending, id),
      ...decisionCommands(`${pending} resolve ${id}`, outcomes, REASON),
    };
    if (not_recorded !== null) return { ...item, ...notRecorded(not_recorded, item, Boolean(flagged)) };
    if (decided !== null) return { ...item, ...notApplied(decided) };
    return { ...item, ...(flagged ? { reason: withProblem(reason, row.network_problem) } : NOT_FLAGGED) };
  });
}

const withProblem = (reason: string, problem: string | null): string =>
  problem === null ? reason : `${reason}. When it was last asked: ${problem}`;

/**
 * What to do if the network has decided but our record can't take it.
 * @param flagged whether an operator can decide
 */
function notRecorded(
  { reason }: NotRecorded,
  { workflow_id, or_command }: Pick<AttentionItem, 'workflow_id' | 'or_command'>,
  flagged: boolean,
): Pick<AttentionItem, 'reason' | 'command' | 'or_command'> {
  return {
    reason: `the network has decided, but recording that failed (${reason}): see the worker's log; once the cause is gone, ask the network again`,
    command: `temporal workflow signal --workflow-id ${workflow_id} --name networkResult`,
    or_command: flagged ? or_command : null,
  };
}

/**
 * Freezes, unfreezes and blocks that take too long; if a card has several, the one that the network is being
 * asked for.
 */
async function readStatusChanges(orm: Orm): Promise<UnfinishedItem[]> {
  const rows = await slowStatusChanges(orm.em.fork(), { patienceMs: STATUS_CHANGE_PATIENCE_MS });
  return rows.map(({ id, partner_id, mode, claim_id, network_card_id, operation, asked, since, ...row }) => ({
    kind: 'card_status_change',
    id,
    partner_id,
    mode,
    since: new Date(since).toISOString(),
    ...(asked
      ? {
          reason: withProblem(
            `the network has not confirmed that the card is ${STATUS_CHANGES[operation].participle}: check that it can be reached`,
            row.network_problem,
          ),
        }
      : {
          reason: `the request to have the card ${STATUS_CHANGES[operation].participle} has not started`,
          worker: SEE_LOG,
        }),
    ...(network_card_id !== null && { at_issuer: atIssuer({ token: claim_id, card: network_card_id }) }),
    command: `npm run operator -- card show ${id}`,
    or_command: null,
    workflow_id: changeCardStatusWorkflowId(id, claim_id),
  }));
}

interface SlowChange {
  id: string;
  partner_id: string;
  mode: Mode;
  network_card_id: string | null;
  claim_id: string;
  operation: StatusChangeOperation;
  network_problem: string | null;
  asked: boolean;
  since: string;
}

const slowStatusChanges = readStatement(
  (_, { patienceMs }: { patienceMs: number }) => sql<SlowChange>`
    SELECT DISTINCT ON (k.id) k.id, k.partner_id, k.mode, k.network_card_id, c.id AS claim_id,
      c.operation, c.network_problem,
      k.status_change_claim_id IS NOT NULL AS asked, ${later(sql`c.created_at`, patienceMs)} AS since
    FROM idempotency_claim c JOIN card k ON k.id = c.card_id
    WHERE c.response_status IS NULL AND c.operation = ANY (${Object.keys(STATUS_CHANGES)})
      AND c.created_at < ${ago(patienceMs)}
    ORDER BY k.id, c.id IS DISTINCT FROM k.status_change_claim_id, c.created_at`,
  { acrossTenants: 'measurement' },
);

/** Normally the network confirms the id that a person gave within ten minutes. */
const CONFIRMATION_PATIENCE_MS = 24 * 3_600_000;

/** Cards in use under an id that a person gave, which the network does not confirm. */
async function readUnconfirmed(orm: Orm): Promise<AttentionItem[]> {
  const rows = await unconfirmed(orm.em.fork(), { patienceMs: CONFIRMATION_PATIENCE_MS });
  return rows.map(({ id, partner_id, funding_cents, network_card_id, since }) => ({
    kind: 'card_network_id',
    id,
    partner_id,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason: `the card is in use as ${network_card_id}, as an operator has said, and the network does not confirm this id: look the card up by its token`,
    at_issuer: atIssuer({ amountCents: funding_cents, token: id, card: network_card_id }),
    command: `npm run operator -- card resolve ${id} --issued --network-card-id "…" ${REASON}`,
    or_command: null,
    workflow_id: null,
  }));
}

const unconfirmed = readStatement(
  (db, { patienceMs }: { patienceMs: number }) =>
    db
      .selectFrom('card')
      .select(['id', 'partner_id', 'funding_cents', 'network_card_id', 'created_at as since'])
      // The first three are the partial index's own.
      .where('mode', '=', sql.lit('live'))
      .where('network_card_id', 'is not', null)
      .where('last4', 'is', null)
      .where('status', '<>', 'blocked')
      .where('created_at', '<', ago(patienceMs)),
  { acrossTenants: 'measurement' },
);

/** A worker restarts a request every minute. One that has not started by then needs attention. */
const REQUEST_PATIENCE_MS = 600_000;

/**
 * Requests for cards, top-ups or withdrawals that have not started, so that no money is held: one item an
 * account and mode.
 */
async function readNotStarted(orm: Orm): Promise<AttentionItem[]> {
  const rows = await notStarted(orm.em.fork(), { patienceMs: REQUEST_PATIENCE_MS });
  return rows.map(({ partner_id, mode, count, since }) => ({
    kind: 'request',
    id: partner_id,
    partner_id,
    mode,
    since: new Date(since).toISOString(),
    reason:
      `${count} requests for cards, top-ups or withdrawals have not started, and nothing is held for them: see the ` +
      "worker's log, or their workflows, for the reason",
    command: `temporal workflow list --query 'PartnerId = "${partner_id}" AND ExecutionStatus = "Running"'`,
    or_command: null,
    workflow_id: null,
  }));
}

const notStarted = readStatement(
  (db, { patienceMs }: { patienceMs: number }) =>
    db
      .selectFrom('idempotency_claim as c')
      .select(({ fn }) => [
        'c.partner_id',
        'c.mode',
        sql<number>`count(*)::int`.as('count'),
        later(fn.min('c.created_at'), patienceMs).as('since'),
      ])
      .where('c.response_status', 'is', null)
      .where('c.operation', 'in', ['create_card', 'top_up_card', 'withdraw_from_card'])
      .where('c.created_at', '<', ago(patienceMs))
      .where(({ exists, not, selectFrom }) =>
        not(exists(selectFrom('card as k').select('k.id').whereRef('k.claim_id', '=', 'c.id'))),
      )
      .where(({ exists, not, selectFrom }) =>
        not(exists(selectFrom('card_transfer as t').select('t.id').whereRef('t.claim_id', '=', 'c.id'))),
      )
      .groupBy(['c.partner_id', 'c.mode']),
  { acrossTenants: 'measurement' },
);
