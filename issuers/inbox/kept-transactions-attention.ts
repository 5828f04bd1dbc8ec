import { sql } from 'kysely';
import type { WhyKept } from '../../domain/network-transaction.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { type AttentionItem, atIssuer } from '../../platform/monitoring/attention-item.ts';
import { MAX_WAITING_BYTES, MAX_WAITING_MESSAGES } from './kept-messages.ts';

/** If more than this wait for the same reason, they share one line. */
const MAX_SINGLE = 20;
/** The part of what may wait from which the bound itself needs attention. */
const NEARLY_FULL = 0.8;

/**
 * Transactions of the network that could not be booked: one item each, or one for a reason that many have.
 */
export async function readKept(orm: Orm): Promise<AttentionItem[]> {
  const em = orm.em.fork();
  const rows = await waiting(em, { maxSingle: MAX_SINGLE });
  const [total] = await totals(em, {});
  const items = rows.map((row) => (row.id === null ? toItemForMany(row) : toItem(row, row.id)));
  return total === undefined || !isNearlyFull(total) ? items : [...items, fullItem(total)];
}

const WHY: Record<WhyKept, string> = {
  card_unknown:
    'no live card has its card id at the network. It is booked by itself as soon as its card is issued. If that ' +
    'issuance was decided "--failed", the network contradicts the decision: book it on that card',
  card_not_issued: 'its card is still being issued. It is booked by itself as soon as that has succeeded',
  card_failed:
    "by our record its card was never issued, and the network contradicts that. Booking it charges the partner's balance",
  id_conflict: 'a different transaction is booked under its id at the network',
  authorization_unknown: 'it ends or changes an authorization whose request has not arrived',
  unbookable: 'it would take a balance or its fee out of range',
  not_understood: 'this release does not understand its type, its currency, its amount or one of its fields',
};

/** What the command to book it needs besides the reason. */
const FLAGS: Record<WhyKept, string> = {
  card_unknown: ' --card "…"',
  card_not_issued: '',
  card_failed: '',
  id_conflict: '',
  authorization_unknown: '',
  unbookable: ' --amount "…"',
  not_understood: ' --type "…" --amount "…"',
};

function toItem({ reason, partner_id, since, ...row }: WaitingRow, id: string): AttentionItem {
  return {
    kind: 'network_transaction',
    id,
    partner_id,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason: `the network reported a transaction that is not booked: ${WHY[reason]}`,
    at_issuer: atIssuer({
      amountCents: row.amount_cents,
      transaction: row.message_id,
      card: row.network_card_id,
    }),
    command: `npm run operator -- transaction book ${id}${FLAGS[reason]} --reason "…"`,
    or_command: `npm run operator -- transaction dismiss ${id} --reason "…"`,
    workflow_id: null,
  };
}

function toItemForMany({ reason, count, since }: WaitingRow): AttentionItem {
  return {
    kind: 'network_transaction',
    id: reason,
    partner_id: null,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason: `the network reported ${count} transactions that are not booked. Of each: ${WHY[reason]}`,
    command: `npm run operator -- transaction kept --reason ${reason}`,
    or_command: null,
    workflow_id: null,
  };
}

interface Totals {
  messages: number;
  bytes: number;
  since: string | null;
}

const isNearlyFull = ({ messages, bytes }: Totals): boolean =>
  messages >= NEARLY_FULL * MAX_WAITING_MESSAGES || bytes >= NEARLY_FULL * MAX_WAITING_BYTES;

function fullItem({ messages, bytes, since }: Totals): AttentionItem {
  return {
    kind: 'network_transactions_full',
    id: 'network_message',
    partner_id: null,
    mode: 'live',
    since: new Date(since ?? Date.now()).toISOString(),
    reason:
      `${messages} of at most ${MAX_WAITING_MESSAGES} transactions, with ${bytes} of at most ${MAX_WAITING_BYTES} bytes, ` +
      'wait to be booked. Past that, the network gets 503 for any that can not be booked, and has to repeat it',
    command: 'npm run operator -- transaction kept',
    or_command: null,
    workflow_id: null,
  };
}

/** What waits, of at most {@link MAX_WAITING_MESSAGES}. */
export async function readTotals(orm: Orm): Promise<Totals> {
  const [total] = await totals(orm.em.fork(), {});
  return total ?? { messages: 0, bytes: 0, since: null };
}

const totals = readStatement(
  () => sql<Totals>`
  SELECT count(*)::int AS messages, coalesce(sum(size_bytes), 0)::int AS bytes, min(created_at) AS since
  FROM network_message WHERE status = 'waiting'`,
);

interface WaitingRow {
  /** Null for an item that stands for all of the reason's messages. */
  id: string | null;
  reason: WhyKept;
  partner_id: string | null;
  message_id: string | null;
  network_card_id: string | null;
  amount_cents: string | null;
  count: number;
  since: string;
}

const waiting = readStatement(
  (_, { maxSingle }: { maxSingle: number }) => sql<WaitingRow>`
  WITH message AS MATERIALIZED (
    SELECT id, reason, message_id, network_card_id, amount_cents, created_at FROM network_message WHERE status = 'waiting'
  ), counted AS (
    SELECT reason, count(*)::int AS count, min(created_at) AS since FROM message GROUP BY reason
  )
  SELECT m.id, m.reason, c.partner_id, m.message_id, m.network_card_id, m.amount_cents, n.count, m.created_at AS since
  FROM counted n JOIN message m ON m.reason = n.reason
  LEFT JOIN card c ON c.network_card_id = m.network_card_id AND c.mode = 'live'
  WHERE n.count <= ${maxSingle}
  UNION ALL
  SELECT NULL, reason, NULL, NULL, NULL, NULL, count, since FROM counted WHERE count > ${maxSingle}`,
  { acrossTenants: 'measurement' },
);
