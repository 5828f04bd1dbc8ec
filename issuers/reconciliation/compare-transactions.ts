import { sql } from 'kysely';
import { type AuthorizationRequest, findDecision, MAX_REQUESTS } from '../../domain/authorization.ts';
import type { NetworkAuthorizationReport, NetworkTransaction } from '../../domain/network-transaction.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import type { TransactionMessage } from '../card-network.ts';
import type { OurObject, Page, Verdict } from './compare-cards.ts';

/**
 * Compares transactions as the network lists them with what we have booked. What has been told and is kept is
 * `under_way`, or was decided by hand.
 * @returns in their order
 */
export async function compareTransactions(
  orm: Orm,
  network: string,
  listed: readonly TransactionMessage[],
): Promise<Verdict[]> {
  const rows = await ours(orm.em.fork(), {
    network,
    networkTransactionIds: listed.map(({ transaction }) => transaction.networkTransactionId),
    networkAuthorizationIds: listed.map(networkAuthorizationOf),
    amountsCents: listed.map(({ transaction }) => transaction.amountCents),
  });
  return listed.map((message, index) => verdict(message, rows[index] as OurTransaction));
}

/** The network's id of the authorization that a listed transaction is about. */
export function networkAuthorizationOf({ transaction: { whole } }: TransactionMessage): string | null {
  return whole !== null && 'networkAuthorizationId' in whole ? whole.networkAuthorizationId : null;
}

interface OurTransaction {
  transaction_id: string | null;
  transaction_type: string | null;
  transaction_cents: string | null;
  message_type: string | null;
  message_cents: string | null;
  was_declined: boolean;
  authorization_id: string | null;
  /** The requests of the authorization that the listed one names. */
  requests: AuthorizationRequest[] | null;
  /**
   * How many requests of its amount were told as declined before we knew the authorization, so that they are
   * not among them.
   */
  early_declines: number;
  /** How many declines of its amount the authorization has; counted if the list of requests is full. */
  recorded_declines: number;
  network_card_id: string | null;
  kept: 'waiting' | 'ended' | null;
}

function verdict({ transaction: listed }: TransactionMessage, ours: OurTransaction): Verdict {
  const { networkTransactionId: issuerId, networkCardId, whole } = listed;
  if (ours.kept !== null) return ours.kept === 'waiting' ? 'under_way' : 'matched';
  const id = ours.transaction_id ?? ours.authorization_id;
  const unknown: Verdict = {
    problem: 'missing_here',
    kind: 'transaction',
    id: null,
    issuerId,
    detail: `the issuer has a ${listed.type ?? 'transaction'} of ${listed.amountCents ?? 'unknown'} cents that it never told us`,
  };
  if (whole === null) return id === null ? unknown : 'matched';
  const isKnown = ours.transaction_type !== null || ours.message_type !== null;
  if (!isKnown) return isDecided(whole, ours) ? 'matched' : unknown;
  // It decided otherwise than we did, and that is news, which counts.
  if (whole.type === 'approval' && ours.was_declined) return unknown;
  if (whole.type === 'decline' && ours.message_type !== null && !ours.was_declined) return unknown;
  const cents = ours.message_type === null ? ours.transaction_cents : ours.message_cents;
  const isSame =
    (ours.network_card_id === null || ours.network_card_id === networkCardId) &&
    (cents === null || whole.amountCents === null || Number(cents) === whole.amountCents) &&
    isSameType(whole, ours);
  if (isSame) return 'matched';
  return {
    problem: 'different',
    kind: 'transaction',
    id,
    issuerId,
    detail:
      `${ours.message_type ?? ours.transaction_type} of ${cents ?? 'no'} cents on ${ours.network_card_id} here; ` +
      `${whole.type} of ${whole.amountCents ?? 'no'} cents on ${networkCardId} at the issuer`,
  };
}

/** Whether we know the request that a decision is about by its place among the authorization's. */
function isDecided(
  whole: NetworkTransaction | NetworkAuthorizationReport,
  { requests, early_declines: early, recorded_declines: recorded }: OurTransaction,
): boolean {
  if (!('final' in whole) || requests === null || whole.amountCents === null) return false;
  const { type, amountCents } = whole;
  if (type !== 'approval' && type !== 'decline') return false;
  const place = type === 'approval' ? whole.approvalNumber : whole.requestNumber;
  return place !== null && findDecision(requests, { type, amountCents, place }, { early, recorded }) === type;
}

function isSameType(
  { type }: NetworkTransaction | NetworkAuthorizationReport,
  { message_type: messageType, transaction_type: transactionType }: OurTransaction,
): boolean {
  // A clearing without an authorization may have been booked as a purchase.
  if (messageType === null) return (type === 'clearing' ? 'purchase' : type) === transactionType;
  // A decision that was asked for is told again as an approval or a decline.
  if (type === 'approval' || type === 'decline')
    return ['authorization', 'increment', 'approval', 'decline'].includes(messageType);
  return type === messageType;
}

const ours = readStatement(
  (
    _,
    values: {
      network: string;
      networkTransactionIds: string[];
      networkAuthorizationIds: (string | null)[];
      amountsCents: (number | null)[];
    },
  ) => sql<OurTransaction>`
    SELECT t.id AS transaction_id, t.type AS transaction_type, t.amount_cents AS transaction_cents,
      m.type AS message_type, m.amount_cents AS message_cents, m.decline_reason IS NOT NULL AS was_declined,
      coalesce(m.authorization_id, a.id) AS authorization_id, a.requests, c.network_card_id,
      (SELECT count(*)::int FROM card_authorization_message e
        WHERE e.mode = 'live' AND e.network_authorization_id = l.authorization_id AND e.type = 'decline'
          AND e.authorization_id IS NULL AND e.amount_cents = l.cents) AS early_declines,
      (SELECT count(*)::int FROM card_transaction d
        WHERE jsonb_array_length(a.requests) >= ${sql.lit(MAX_REQUESTS)} AND d.card_id = a.card_id AND d.type = 'decline'
          AND d.authorization_id = a.id AND d.amount_cents = l.cents) AS recorded_declines,
      (SELECT CASE WHEN bool_or(k.status = 'waiting') THEN 'waiting' ELSE 'ended' END FROM network_message k
        WHERE k.network = ${values.network} AND k.kind = 'transaction' AND k.message_id = l.transaction_id
        HAVING count(*) > 0) AS kept
    FROM unnest(${values.networkTransactionIds}::text[], ${values.networkAuthorizationIds}::text[],
      ${values.amountsCents}::bigint[]) WITH ORDINALITY l (transaction_id, authorization_id, cents, n)
    LEFT JOIN card_transaction t ON t.mode = 'live' AND t.network_transaction_id = l.transaction_id
    LEFT JOIN card_authorization_message m ON m.mode = 'live' AND m.message_id = l.transaction_id
    LEFT JOIN card_authorization a ON a.mode = 'live' AND a.network_authorization_id = l.authorization_id
    LEFT JOIN card c ON c.id = coalesce(t.card_id, m.card_id)
    ORDER BY l.n`,
  { acrossTenants: 'network' },
);

/** One of ours that the network has as a part of something. */
interface OurPart extends OurObject {
  /** The network's id of that; null if it was not told. */
  payment_id: string | null;
}

/**
 * A page of our live transactions that moved money, by id. One that was booked by hand beside another has no
 * id of the network.
 */
export const readOurTransactions = readStatement(
  (_, { runId, after, until, limit }: Page) => sql<OurPart>`
    SELECT t.id, t.network_transaction_id AS issuer_id, t.type || ' of ' || t.amount_cents || ' cents here' AS detail,
      coalesce(t.network_payment_id, a.network_authorization_id) AS payment_id,
      t.type <> 'decline' AND t.network_transaction_id NOT LIKE 'nmsg\\_%'
        AND s.is_seen IS NULL AND t.mode = 'live' AS is_missing
    FROM (SELECT * FROM card_transaction WHERE id > ${after} AND id < ${until} ORDER BY id LIMIT ${limit}) t
    LEFT JOIN LATERAL (
      SELECT true AS is_seen FROM reconciliation_seen
      WHERE run_id = ${runId} AND kind = 'transaction' AND key = t.network_transaction_id LIMIT 1
    ) s ON true
    LEFT JOIN card_authorization a ON a.id = t.authorization_id
    ORDER BY t.id`,
  { acrossTenants: 'network' },
);

/** A page of our live authorizations that were approved, by id. */
export const readOurAuthorizations = readStatement(
  (_, { runId, after, until, limit }: Page) => sql<OurPart>`
    SELECT a.id, a.network_authorization_id AS issuer_id, a.network_authorization_id AS payment_id, 'authorization of ' || a.amount_cents || ' cents here' AS detail,
      a.status <> 'declined' AND a.network_authorization_id IS NOT NULL
        AND s.is_seen IS NULL AND a.mode = 'live' AS is_missing
    FROM (SELECT * FROM card_authorization WHERE id > ${after} AND id < ${until} ORDER BY id LIMIT ${limit}) a
    LEFT JOIN LATERAL (
      SELECT true AS is_seen FROM reconciliation_seen
      WHERE run_id = ${runId} AND kind = 'authorization' AND key = a.network_authorization_id LIMIT 1
    ) s ON true
    ORDER BY a.id`,
  { acrossTenants: 'network' },
);

/**
 * What the network has to be asked about by its id, because it began before the period and something in it
 * may be new or wrong: our pending authorizations, the newest first, and what open findings are about.
 */
export const readOlderPayments = readStatement(
  (_, { network, until, limit }: { network: string; until: string; limit: number }) => sql<{ id: string }>`
    WITH pending AS MATERIALIZED (
      SELECT id, network_authorization_id FROM card_authorization
      WHERE mode = 'live' AND status = 'pending' AND network_authorization_id IS NOT NULL AND id < ${until}
    )
    SELECT id FROM (
      (SELECT network_authorization_id AS id FROM pending ORDER BY pending.id DESC LIMIT ${limit})
      UNION
      (SELECT coalesce(t.network_payment_id, a.network_authorization_id) FROM reconciliation_finding f
      LEFT JOIN card_transaction t ON t.id = f.object_id AND t.mode = 'live'
      LEFT JOIN card_authorization a ON a.id = coalesce(t.authorization_id, f.object_id) AND a.mode = 'live'
      WHERE f.network = ${network} AND f.kind = 'transaction' AND f.problem = 'different' AND f.object_id <> ''
      ORDER BY f.id DESC LIMIT ${limit})
    ) payment WHERE id IS NOT NULL`,
  { acrossTenants: 'network' },
);
