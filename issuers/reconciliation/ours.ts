import { sql } from 'kysely';
import type { IdPrefix } from '../../domain/ids.ts';
import { readStatement } from '../../platform/db/sql.ts';

/** One of ours, and whether the network should have listed it in the run, and has not. */
export interface OurObject {
  id: string;
  issuer_id: string | null;
  /** The network's id of the payment that it is a part of; null if it is of none, or that was not told. */
  payment_id: string | null;
  detail: string;
  is_missing: boolean;
}

interface Page {
  runId: string;
  /** The page's ids are above this one, and below `until`. */
  after: string;
  until: string;
  limit: number;
}

// The pages of ours are of both modes, so that none has to pass over a million of the other one. What was
// seen is looked up one by one.

const readCards = readStatement(
  (_, { runId, after, until, limit }: Page) => sql<OurObject>`
    SELECT c.id, c.network_card_id AS issuer_id, NULL AS payment_id, 'the card is ' || c.status || ' here' AS detail,
      c.network_card_id IS NOT NULL AND c.status IN ('active', 'frozen', 'blocked')
        AND s.is_seen IS NULL AND c.mode = 'live' AS is_missing
    FROM (SELECT * FROM card WHERE id > ${after} AND id < ${until} ORDER BY id LIMIT ${limit}) c
    LEFT JOIN LATERAL (
      SELECT true AS is_seen FROM reconciliation_seen
      WHERE run_id = ${runId} AND kind = 'card' AND key = c.network_card_id LIMIT 1
    ) s ON true
    ORDER BY c.id`,
  { acrossTenants: 'network' },
);

/** The cards' first loads. */
const readLoads = readStatement(
  (_, { runId, after, until, limit }: Page) => sql<OurObject>`
    SELECT c.id, NULL AS issuer_id, NULL AS payment_id,
      'the card was issued with ' || c.funding_cents || ' cents' AS detail,
      c.funding_cents > 0 AND c.status IN ('active', 'frozen', 'blocked')
        AND s.is_seen IS NULL AND c.mode = 'live' AS is_missing
    FROM (SELECT * FROM card WHERE id > ${after} AND id < ${until} ORDER BY id LIMIT ${limit}) c
    LEFT JOIN LATERAL (
      SELECT true AS is_seen FROM reconciliation_seen
      WHERE run_id = ${runId} AND kind = 'movement' AND key = c.id LIMIT 1
    ) s ON true
    ORDER BY c.id`,
  { acrossTenants: 'network' },
);

const readTransfers = readStatement(
  (_, { runId, after, until, limit }: Page) => sql<OurObject>`
    SELECT t.id, NULL AS issuer_id, NULL AS payment_id,
      CASE t.direction WHEN 'topup' THEN 'top-up' ELSE 'withdrawal' END || ' of ' || t.amount_cents || ' cents, succeeded, here'
        AS detail,
      t.status = 'succeeded' AND s.is_seen IS NULL AND t.mode = 'live' AS is_missing
    FROM (SELECT * FROM card_transfer WHERE id > ${after} AND id < ${until} ORDER BY id LIMIT ${limit}) t
    LEFT JOIN LATERAL (
      SELECT true AS is_seen FROM reconciliation_seen
      WHERE run_id = ${runId} AND kind = 'movement' AND key = t.id LIMIT 1
    ) s ON true
    ORDER BY t.id`,
  { acrossTenants: 'network' },
);

const readTrueUps = readStatement(
  (_, { runId, after, until, limit }: Page) => sql<OurObject>`
    SELECT r.id, NULL AS issuer_id, NULL AS payment_id,
      'true-up of ' || r.amount_cents || ' cents, succeeded, here' AS detail,
      r.status = 'succeeded' AND s.is_seen IS NULL AND r.mode = 'live' AS is_missing
    FROM (SELECT * FROM true_up WHERE id > ${after} AND id < ${until} ORDER BY id LIMIT ${limit}) r
    LEFT JOIN LATERAL (
      SELECT true AS is_seen FROM reconciliation_seen
      WHERE run_id = ${runId} AND kind = 'movement' AND key = r.token LIMIT 1
    ) s ON true
    ORDER BY r.id`,
  { acrossTenants: 'network' },
);

/** Transactions that moved money. */
const readTransactions = readStatement(
  (_, { runId, after, until, limit }: Page) => sql<OurObject>`
    SELECT t.id, t.network_transaction_id AS issuer_id, t.network_payment_id AS payment_id,
      t.type || ' of ' || t.amount_cents || ' cents here' AS detail,
      t.type <> 'decline' AND s.is_seen IS NULL AND t.mode = 'live' AS is_missing
    FROM (SELECT * FROM card_transaction WHERE id > ${after} AND id < ${until} ORDER BY id LIMIT ${limit}) t
    LEFT JOIN LATERAL (
      SELECT true AS is_seen FROM reconciliation_seen
      WHERE run_id = ${runId} AND kind = 'transaction' AND key = t.network_transaction_id LIMIT 1
    ) s ON true
    ORDER BY t.id`,
  { acrossTenants: 'network' },
);

/** Authorizations that were approved. */
const readAuthorizations = readStatement(
  (_, { runId, after, until, limit }: Page) => sql<OurObject>`
    SELECT a.id, a.network_authorization_id AS issuer_id, a.network_authorization_id AS payment_id,
      'authorization of ' || a.amount_cents || ' cents here' AS detail,
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

/** Pages of ours by id. */
export interface OurPages {
  prefix: IdPrefix;
  read: typeof readCards;
}

export const OUR_CARDS: OurPages = { prefix: 'card', read: readCards };
export const OUR_MOVEMENTS: OurPages[] = [
  { prefix: 'card', read: readLoads },
  { prefix: 'topup', read: readTransfers },
  { prefix: 'wdr', read: readTransfers },
];
export const OUR_TRUE_UPS: OurPages = { prefix: 'tru', read: readTrueUps };
export const OUR_TRANSACTIONS: OurPages = { prefix: 'txn', read: readTransactions };
export const OUR_AUTHORIZATIONS: OurPages = { prefix: 'auth', read: readAuthorizations };
