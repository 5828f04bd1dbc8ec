import type pg from 'pg';
import type { IdPrefix } from '../../../domain/ids.ts';
import type { Tenant } from '../../../domain/mode.ts';
import { lowestId } from '../../../platform/crypto/new-id.ts';
import { splitFirst } from '../partitions.ts';

/** Between two rows. */
export const STEP_MS = 10;
export const OWNER: Tenant = { partnerId: 'prt_owner', mode: 'test' };
export const OTHER: Tenant = { partnerId: 'prt_other', mode: 'test' };

export interface Size {
  /** Of each table. */
  rows: number;
  /** Of each table that is partitioned by time: the rows are spread over all of them. */
  partitions: number;
}

/** When the n-th newest row was made, and its id. */
export interface Rows {
  at(n: number): Date;
  idOf(prefix: IdPrefix, n: number): string;
}

export async function seedLists(owner: pg.Client, size: Size, rowsAre: Rows): Promise<void> {
  await partition(owner, size, rowsAre);
  await seed(owner, size, rowsAre);
  await owner.query('ANALYZE');
}

async function partition(owner: pg.Client, { rows, partitions }: Size, { at }: Rows): Promise<void> {
  const cuts = Array.from({ length: partitions - 1 }, (_, i) => i + 1);
  const moments = cuts.map((cut) => at(Math.round((1 - cut / partitions) * rows)));
  const ids = moments.map((moment) => lowestId('evt', moment).slice(0, -16));
  await splitFirst(owner, 'event', ids);
  await splitFirst(owner, 'delivery_attempt', ids);
  const years = cuts.map((cut) => `${new Date().getUTCFullYear() - partitions + cut}-01-01`);
  await splitFirst(owner, 'ledger.entry', years);
}

/** Straight into the tables: what the triggers and foreign keys check is not what is looked at here. */
async function seed(owner: pg.Client, size: Size, { at, idOf }: Rows): Promise<void> {
  const { rows } = size;
  await owner.query(`SET session_replication_role = replica`);
  await owner.query(
    `CREATE TEMP TABLE row (n int PRIMARY KEY, partner text, at timestamptz, card text, evt text, topup text, txn text, auth text, dep text, wdr text)`,
  );
  for (let from = 0; from < rows; from += 20_000) {
    const numbers = Array.from({ length: 20_000 }, (_, i) => from + i);
    const ids = (prefix: IdPrefix) => numbers.map((n) => idOf(prefix, n));
    await owner.query(
      `INSERT INTO row SELECT * FROM unnest($1::int[], $2::text[], $3::timestamptz[], $4::text[], $5::text[],
       $6::text[], $7::text[], $8::text[], $9::text[], $10::text[])`,
      [
        numbers,
        numbers.map((n) => (n >= rows - 1_000 && n < rows - 300 ? OTHER.partnerId : OWNER.partnerId)),
        numbers.map((n) => at(n).toISOString()),
        ids('card'),
        ids('evt'),
        ids('topup'),
        ids('txn'),
        ids('auth'),
        ids('dep'),
        ids('wdr'),
      ],
    );
  }
  for (const statement of seedStatements(size)) await owner.query(statement);
  await owner.query(`SET session_replication_role = origin`);
}

function seedStatements({ rows, partitions }: Size): string[] {
  return [
    `INSERT INTO partner (id, name) VALUES ('${OWNER.partnerId}', 'Owner'), ('${OTHER.partnerId}', 'Other')`,
    `INSERT INTO product (code, bin, network) VALUES ('USD', '424242', 'visa')`,
    // The newest quarter is pending or has no endpoint, then comes what was delivered, and at last a few of each other.
    // The newest half has no key, and so is no operation.
    `INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, fingerprint, request_id, lease_expires_at, response_status,
     response_body, created_at, operation_status)
   SELECT replace(evt, 'evt_', 'claim_'), partner, 'test', CASE WHEN n >= ${rows / 2} OR n = 7 THEN 'key ' || n END, 'create_card', '', 'req',
     at, 201, '', at, CASE WHEN n < ${rows / 2} THEN NULL WHEN n >= ${rows - 100} THEN 'awaiting_review' WHEN n >= ${rows - 200} THEN 'in_progress'
       ELSE 'completed' END FROM row`,
    `INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
   SELECT evt, partner, 'test', CASE WHEN n >= ${rows - 100} THEN 'deposit.confirmed' WHEN n >= ${(rows * 3) / 4} THEN 'topup.succeeded'
     WHEN n % 2 = 0 THEN 'card.issued' ELSE 'card.transaction.created' END,
     CASE WHEN partner = '${OWNER.partnerId}' THEN (SELECT card FROM row c WHERE c.n = (row.n >= ${rows - 100})::int) END,
     json_build_object('id', evt, 'created', at), at FROM row`,
    `INSERT INTO delivery (event_id, endpoint_id, partner_id, mode, type, status)
   SELECT e.id, '', e.partner_id, e.mode, e.type, CASE WHEN n >= ${rows - 50} THEN (ARRAY['given_up', 'retrying', 'parked'])[1 + n % 3]
     WHEN n < ${rows / 8} THEN 'pending' WHEN n < ${rows / 4} THEN 'no_endpoint'
     WHEN n % 2 = 0 THEN 'delivered' ELSE 'given_up' END
   FROM row JOIN event e ON e.id = row.evt`,
    `INSERT INTO delivery_attempt (event_id, endpoint_id, number, started_at, duration_ms, delivered)
   SELECT evt, '', 1, at, 1, true FROM row WHERE n % 2 = 0 AND n >= ${rows / 4}`,
    `INSERT INTO card (id, partner_id, mode, status, external_ref, product_code, network, network_card_id, failure_code, funding_cents,
     fees, created_at)
   SELECT card, partner, 'test', CASE WHEN n = 0 THEN 'active' WHEN n < ${rows / 2} THEN 'failed' WHEN n >= ${rows - 10} THEN 'frozen'
       WHEN n >= ${rows - 20} THEN 'blocked' ELSE 'active' END,
     CASE WHEN n = ${(rows * 3) / 4} OR n BETWEEN 1 AND ${rows / 4} THEN 'often-failed' ELSE 'ref-' || n END, 'USD', 'visa', card,
     CASE WHEN n BETWEEN 1 AND ${rows / 2 - 1} THEN 'network_declined' END, 100, '[]', at FROM row`,
    `INSERT INTO ledger.account (id, partner_id, mode, kind, card_id)
   SELECT 'card/' || card, partner, 'test', 'card', card FROM row`,
    `INSERT INTO card_transfer (id, partner_id, mode, card_id, direction, status, amount_cents, card_balance_cents, created_at, completed_at)
   SELECT CASE direction WHEN 'topup' THEN topup ELSE wdr END, '${OWNER.partnerId}', 'test',
     (SELECT card FROM row c WHERE c.n = (row.n >= ${rows - 100})::int), direction, 'succeeded', 100, 0, at, at
   FROM row CROSS JOIN unnest('{topup,withdrawal}'::text[]) d (direction)`,
    `INSERT INTO card_transaction (id, partner_id, mode, card_id, network_transaction_id, type,
     amount_cents, fees, charged_to, card_balance_after_cents, created_at, decline_reason)
   SELECT txn, '${OWNER.partnerId}', 'test', (SELECT card FROM row c WHERE c.n = (row.n >= ${rows - 100})::int), txn, kind, 100, '[]', 'card', 0, at, CASE kind WHEN 'decline' THEN 'card_frozen' END
   FROM row CROSS JOIN LATERAL (SELECT CASE WHEN n >= ${rows - 10} THEN 'refund' WHEN n >= ${rows - 50} THEN 'decline' ELSE 'purchase' END) k (kind)`,
    `INSERT INTO card_authorization (id, partner_id, mode, card_id, status, amount_cents, held_cents, settled_cents, requests, holds,
     expires_at, created_at, network_authorization_id)
   SELECT auth, '${OWNER.partnerId}', 'test', (SELECT card FROM row c WHERE c.n = (row.n >= ${rows - 100})::int),
     CASE WHEN n >= ${rows - 150} THEN 'pending' ELSE 'closed' END, 100, CASE WHEN n >= ${rows - 150} THEN 100 ELSE 0 END,
     CASE WHEN n >= ${rows - 150} THEN 0 ELSE 100 END, '[1]', 1, at, at, 'network_auth_' || n FROM row`,
    `INSERT INTO payment (mode, payment_id, partner_id, card_id, authorization_id, said, requests, cleared_cents, is_expired)
   SELECT 'test', 'network_auth_' || n, '${OWNER.partnerId}', (SELECT card FROM row c WHERE c.n = 0), auth,
     '{"version": [], "unreadable": []}', '[]', 0, false FROM row`,
    `INSERT INTO simulated_message (id, payment_id, network_card_id, said, answer)
   SELECT 'network_message_' || n, 'network_auth_' || n, 'net', '{}', '{}' FROM row`,
    `INSERT INTO deposit (id, partner_id, mode, network, contract_address, address_index, address, address_hash, amount_cents,
     status, created_at, expires_at)
   SELECT dep, partner, 'live', 'private', 'T', n, 'T', decode(lpad(to_hex(n), 40, '0'), 'hex'), 100, 'expired', at, at
   FROM row`,
    `INSERT INTO deposit_payment (network, tx_hash, log_index, deposit_id, partner_id, mode, value_micro_usdt, block_number,
     transaction_index, block_time, status)
   SELECT 'private', md5(n::text) || md5(n::text), i, dep, partner, 'live', 1, n + 1, 0, at, 'returned'
   FROM row CROSS JOIN generate_series(0, 2) i WHERE n % 4 = 0`,
    `INSERT INTO ledger.account (id, partner_id, mode, kind, posted, version)
   VALUES ('prepaid/test/${OWNER.partnerId}', '${OWNER.partnerId}', 'test', 'prepaid', ${100 * rows}, ${rows})`,
    // The balance's first transfer is its oldest.
    `INSERT INTO ledger.transfer (id, fingerprint, operation_id, partner_id, mode, code, phase, debit_id, credit_id, amount, created_at)
   SELECT md5(n::text)::uuid, '', 'faucet/credit_' || n, '${OWNER.partnerId}', 'test', 'fund_faucet', 'single',
     'faucet/test/${OWNER.partnerId}', 'prepaid/test/${OWNER.partnerId}', 100, at + (2 * n - ${rows - 1}) * interval '${STEP_MS} milliseconds' FROM row`,
    `INSERT INTO ledger.entry (transfer_id, side, account_id, amount, balance_after, account_version, booked_on)
   SELECT md5(n::text)::uuid, 'credit', 'prepaid/test/${OWNER.partnerId}', 100, 100 * (n + 1), n + 1,
     current_date - make_interval(years => (${partitions - 1}) - n / ${Math.ceil(rows / partitions)})
   FROM row`,
    `INSERT INTO ledger.entry (transfer_id, side, account_id, amount, balance_after, account_version, booked_on)
   SELECT transfer_id, 'debit', 'card/' || (SELECT card FROM row WHERE n = 0), amount, balance_after, account_version, booked_on
   FROM ledger.entry WHERE account_id = 'prepaid/test/${OWNER.partnerId}'`,
  ];
}
