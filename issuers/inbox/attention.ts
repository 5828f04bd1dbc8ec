import { sql } from 'kysely';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { type AttentionItem, atIssuer } from '../../platform/monitoring/attention-item.ts';
import { type InboxTotals, MAX_WAITING, MAX_WAITING_BYTES, readInboxTotals, roomUsed } from './room.ts';
import type { WhyWaiting } from './tables.ts';

/** If more than this wait for the same reason, they share one line. */
const MAX_SINGLE = 20;
/** How long something waits before it needs attention, if it ends by itself. */
const PATIENCE_MINUTES = 10;
/** The part of what may wait from which the bound itself needs attention. */
const NEARLY_FULL = 0.8;

/** What waits in the inbox and needs a person, and the elements of payments that only a person can read. */
export async function readWaitingPayments(orm: Orm): Promise<AttentionItem[]> {
  const em = orm.em.fork();
  const items = (await elementsToDecide(em, { maxSingle: MAX_SINGLE })).map(toElementItem);
  for (const row of await waiting(em, { maxSingle: MAX_SINGLE })) items.push(toInboxItem(row));
  const totals = await readInboxTotals(orm);
  return roomUsed(totals) >= NEARLY_FULL ? [...items, fullItem(totals)] : items;
}

type WhyUndecided = 'unreadable' | 'card_unknown' | 'card_failed';

const WHY_UNDECIDED: Record<WhyUndecided, string> = {
  unreadable:
    'this release can not put it into cents. Until it is decided, its payment goes on holding what it held',
  card_unknown:
    'no live card has its card id at the network. It is booked by itself as soon as its card is issued. If that ' +
    'issuance was decided "--failed", the network contradicts the decision: book it on that card',
  card_failed:
    "by our record its card was never issued, and the network contradicts that. Booking it charges the partner's balance",
};

interface ElementRow {
  /** Null for a line that stands for all of the reason. */
  id: string | null;
  why: WhyUndecided;
  payment_id: string;
  partner_id: string | null;
  network_card_id: string | null;
  what: string;
  amount: number | null;
  currency: string | null;
  /** Who has said what it means, if another person has to approve that. */
  requested_by: string | null;
  count: number;
  since: string;
}

function toElementItem({ id, why, count, since, ...row }: ElementRow): AttentionItem {
  const item = {
    kind: 'network_transaction' as const,
    partner_id: row.partner_id,
    mode: 'live' as const,
    since: new Date(since).toISOString(),
    workflow_id: null,
  };
  if (id === null) {
    return {
      ...item,
      id: why,
      reason: `the network has ${count} elements of payments that are not booked. Of each: ${WHY_UNDECIDED[why]}`,
      command: 'npm run operator -- transaction undecided',
      or_command: null,
    };
  }
  const at_issuer = atIssuer({
    amount: row.amount,
    currency: row.currency,
    payment: row.payment_id,
    element: id,
    card: row.network_card_id,
  });
  const dismiss = `npm run operator -- transaction dismiss ${id} --reason "…"`;
  if (row.requested_by !== null) {
    return {
      ...item,
      id,
      at_issuer,
      reason: `${row.requested_by} has said what an element of a payment means, and another person has to approve that`,
      command: `npm run operator -- transaction approve ${id}`,
      or_command: `npm run operator -- transaction reject ${id} --reason "…"`,
    };
  }
  const flags = `${why === 'card_unknown' ? ' --card "…"' : ''} --type "…" --amount "…"`;
  return {
    ...item,
    id,
    at_issuer,
    reason: `the network has a ${row.what} that is not booked: ${WHY_UNDECIDED[why]}`,
    command: `npm run operator -- transaction book ${id}${flags} --reason "…"`,
    or_command: dismiss,
  };
}

/** Elements that nobody has decided, or whose decision waits for an approval. `e` is the element. */
export const UNDECIDED = sql`
  SELECT u.id, 'unreadable' AS why, y.payment_id, y.partner_id, k.network_card_id, u.what, u.amount, u.currency,
    e.requested_by, u.at::timestamptz AS since
  FROM payment y JOIN card k ON k.id = y.card_id
  CROSS JOIN LATERAL jsonb_to_recordset(y.said -> 'unreadable')
    u (id text, what text, amount bigint, currency text, at text)
  LEFT JOIN payment_element e ON e.id = u.id
  WHERE y.mode = 'live' AND y.said -> 'unreadable' <> '[]' AND e.approved IS NOT TRUE
  UNION ALL
  SELECT u.id, i.reason, i.id, k.partner_id, i.network_card_id, u.what, u.amount, u.currency, e.requested_by, i.created_at
  FROM network_inbox i LEFT JOIN card k ON k.network_card_id = i.network_card_id AND k.mode = 'live'
  CROSS JOIN LATERAL jsonb_to_recordset(i.elements) u (id text, what text, amount bigint, currency text)
  LEFT JOIN payment_element e ON e.id = u.id
  WHERE i.reason IN ('card_unknown', 'card_failed') AND e.approved IS NOT TRUE`;

const elementsToDecide = readStatement(
  (_, { maxSingle }: { maxSingle: number }) => sql<ElementRow>`
    WITH undecided AS MATERIALIZED (${UNDECIDED}),
    counted AS (SELECT why, count(*)::int AS count, min(since) AS since FROM undecided GROUP BY why)
    SELECT u.id, u.why, u.payment_id, u.partner_id, u.network_card_id, u.what, u.amount, u.currency, u.requested_by,
      n.count, u.since
    FROM counted n JOIN undecided u ON u.why = n.why WHERE n.count <= ${maxSingle}
    UNION ALL
    SELECT NULL, why, '', NULL, NULL, '', NULL, NULL, NULL, count, since FROM counted WHERE count > ${maxSingle}`,
  { acrossTenants: 'measurement' },
);

const WHY_WAITING: Record<WhyWaiting | 'not_tried', string> = {
  card_unknown:
    'no live card has its card id at the network. It is booked by itself as soon as its card is issued',
  card_not_issued: 'its card is still being issued. It is booked by itself as soon as that has succeeded',
  card_failed: 'by our record its card was never issued, and the network contradicts that',
  unbookable:
    'it would take a balance or its fee out of range. It is tried again: have the balance lowered, such as by a withdrawal',
  authorization_unknown: 'it ends an authorization whose request has not arrived',
  network_unavailable: 'the network does not answer about it. It is tried again at least every five minutes',
  not_readable: "this release can't read it; the worker's log says why",
  not_taken: "it could not be taken; the worker's log says why",
  not_tried: 'no worker has tried. Check that workers for cards are running, with the same CARD_NETWORK',
};

interface WaitingRow {
  /** Null for a line that stands for all of the reason. */
  id: string | null;
  network: string;
  kind: 'payment' | 'transfer';
  reason: WhyWaiting | null;
  network_card_id: string | null;
  partner_id: string | null;
  count: number;
  since: string;
}

function toInboxItem({ id, network, kind, reason, count, since, ...row }: WaitingRow): AttentionItem {
  const why = WHY_WAITING[reason ?? 'not_tried'];
  const ids = kind === 'payment' ? { payment: id } : { token: id };
  return {
    kind: 'network_inbox',
    id: id ?? reason ?? 'not_tried',
    partner_id: row.partner_id,
    mode: 'live',
    since: new Date(since).toISOString(),
    reason:
      id === null
        ? `${count} ${kind}s of ${network} wait. Of each: ${why}`
        : `a ${kind} of ${network} waits: ${why}`,
    ...(id !== null && { at_issuer: atIssuer({ ...ids, card: row.network_card_id }) }),
    command:
      id === null
        ? 'npm run operator -- network-event list'
        : `npm run operator -- network-event retry ${id}`,
    or_command: id === null ? null : `npm run operator -- network-event dismiss ${id} --reason "…"`,
    workflow_id: null,
  };
}

// What has elements to decide is shown by them.
const waiting = readStatement(
  (_, { maxSingle }: { maxSingle: number }) => sql<WaitingRow>`
    WITH late AS MATERIALIZED (
      SELECT i.id, i.network, i.kind, i.reason, i.network_card_id, k.partner_id, i.created_at FROM network_inbox i
      LEFT JOIN card k ON k.network_card_id = i.network_card_id AND k.mode = 'live'
      WHERE i.elements = '[]' AND i.reason IN ('card_unknown', 'card_failed') OR i.reason IN ('unbookable', 'card_not_issued',
          'authorization_unknown')
        OR (i.reason IS NULL OR i.reason IN ('network_unavailable', 'not_readable', 'not_taken'))
          AND i.created_at < now() - ${sql.lit(PATIENCE_MINUTES)} * interval '1 minute'
    ), counted AS (
      SELECT network, kind, reason, count(*)::int AS count, min(created_at) AS since FROM late GROUP BY 1, 2, 3
    )
    SELECT l.id, n.network, n.kind, n.reason, l.network_card_id, l.partner_id, n.count, l.created_at AS since
    FROM counted n JOIN late l ON l.network = n.network AND l.kind = n.kind AND l.reason IS NOT DISTINCT FROM n.reason
    WHERE n.count <= ${maxSingle}
    UNION ALL
    SELECT NULL, network, kind, reason, NULL, NULL, count, since FROM counted WHERE count > ${maxSingle}`,
  { acrossTenants: 'measurement' },
);

function fullItem({ objects, bytes, oldestSeconds }: InboxTotals): AttentionItem {
  return {
    kind: 'network_inbox_full',
    id: 'network_inbox',
    partner_id: null,
    mode: 'live',
    since: new Date(Date.now() - oldestSeconds * 1_000).toISOString(),
    reason:
      `${objects} of at most ${MAX_WAITING} payments and transfers, with ${bytes} of at most ${MAX_WAITING_BYTES} bytes, ` +
      'wait to be looked at. Past that, the network gets 503, and has to repeat',
    command: 'npm run operator -- network-event list',
    or_command: null,
    workflow_id: null,
  };
}
