import { type RawBuilder, sql } from 'kysely';
import type { IdPrefix } from '../../domain/ids.ts';
import { readStatement } from '../../platform/db/sql.ts';
import type { SeenKind } from './seen.ts';

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

/** Columns of a table's row `o`. */
interface Ours {
  table: 'card' | 'card_transfer' | 'true_up' | 'card_transaction' | 'card_authorization';
  seenAs: SeenKind;
  /** What the network's list names it by. */
  key: RawBuilder<unknown>;
  issuerId?: RawBuilder<unknown>;
  paymentId?: RawBuilder<unknown>;
  detail: RawBuilder<unknown>;
  /** Whether the network has to have it, if it is live. */
  isExpected: RawBuilder<unknown>;
}

/**
 * Pages of ours by id. They are of both modes, so that none has to pass over a million of the other one, and what
 * was seen is looked up one by one.
 */
function pagesOf(prefix: IdPrefix, ours: Ours) {
  const { issuerId = sql`NULL`, paymentId = sql`NULL` } = ours;
  const read = readStatement(
    (_, { runId, after, until, limit }: Page) => sql<OurObject>`
      SELECT o.id, ${issuerId} AS issuer_id, ${paymentId} AS payment_id, ${ours.detail} AS detail,
        ${ours.isExpected} AND s.is_seen IS NULL AND o.mode = 'live' AS is_missing
      FROM (SELECT * FROM ${sql.raw(ours.table)} WHERE id > ${after} AND id < ${until} ORDER BY id LIMIT ${limit}) o
      LEFT JOIN LATERAL (
        SELECT true AS is_seen FROM reconciliation_seen
        WHERE run_id = ${runId} AND kind = ${sql.lit(ours.seenAs)} AND key = ${ours.key} LIMIT 1
      ) s ON true
      ORDER BY o.id`,
    { acrossTenants: 'network' },
  );
  return { prefix, read };
}

export type OurPages = ReturnType<typeof pagesOf>;

export const OUR_CARDS = pagesOf('card', {
  table: 'card',
  seenAs: 'card',
  key: sql`o.network_card_id`,
  issuerId: sql`o.network_card_id`,
  detail: sql`'the card is ' || o.status || ' here'`,
  isExpected: sql`o.network_card_id IS NOT NULL AND o.status IN ('active', 'frozen', 'blocked')`,
});

/** The cards' first loads. */
const OUR_LOADS = pagesOf('card', {
  table: 'card',
  seenAs: 'movement',
  key: sql`o.id`,
  detail: sql`'the card was issued with ' || o.funding_cents || ' cents'`,
  isExpected: sql`o.funding_cents > 0 AND o.status IN ('active', 'frozen', 'blocked')`,
});

const TRANSFERS: Ours = {
  table: 'card_transfer',
  seenAs: 'movement',
  key: sql`o.id`,
  detail: sql`CASE o.direction WHEN 'topup' THEN 'top-up' ELSE 'withdrawal' END
    || ' of ' || o.amount_cents || ' cents, succeeded, here'`,
  isExpected: sql`o.status = 'succeeded'`,
};

export const OUR_MOVEMENTS = [OUR_LOADS, pagesOf('topup', TRANSFERS), pagesOf('wdr', TRANSFERS)];

export const OUR_TRUE_UPS = pagesOf('tru', {
  table: 'true_up',
  seenAs: 'movement',
  key: sql`o.token`,
  detail: sql`'true-up of ' || o.amount_cents || ' cents, succeeded, here'`,
  isExpected: sql`o.status = 'succeeded'`,
});

export const OUR_TRANSACTIONS = pagesOf('txn', {
  table: 'card_transaction',
  seenAs: 'transaction',
  key: sql`o.network_transaction_id`,
  issuerId: sql`o.network_transaction_id`,
  paymentId: sql`o.network_payment_id`,
  detail: sql`o.type || ' of ' || o.amount_cents || ' cents here'`,
  isExpected: sql`o.type <> 'decline'`,
});

export const OUR_AUTHORIZATIONS = pagesOf('auth', {
  table: 'card_authorization',
  seenAs: 'authorization',
  key: sql`o.network_authorization_id`,
  issuerId: sql`o.network_authorization_id`,
  paymentId: sql`o.network_authorization_id`,
  detail: sql`'authorization of ' || o.amount_cents || ' cents here'`,
  isExpected: sql`o.status <> 'declined' AND o.network_authorization_id IS NOT NULL`,
});
