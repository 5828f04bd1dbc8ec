import assert from 'node:assert/strict';
import type pg from 'pg';
import { newId } from '../../platform/crypto/new-id.ts';
import { asOwner, connectTo, createTestDatabase, operatorUrlOf, workerUrlOf } from '../support/postgres.ts';

const HASH = 'ab'.repeat(32);

/** What an operator's login may change, and the subject and detail of the entry that belongs to it. */
const CHANGES: [what: string, statement: string, subject: string, detail?: object][] = [
  [
    'an adjustment',
    `INSERT INTO balance_adjustment (id, partner_id, mode, amount_cents, reason) VALUES ('adj_1', 'prt_1', 'live', 900000, 'r')`,
    'prt_1',
    { adjustmentId: 'adj_1' },
  ],
  [
    'a request for one',
    `INSERT INTO adjustment_request (id, partner_id, mode, amount_cents, reason, requested_by)
     VALUES ('adj_2', 'prt_1', 'live', 900000, 'r', 'ada')`,
    'prt_1',
    { adjustmentId: 'adj_2' },
  ],
  [
    'the decision on one',
    `UPDATE adjustment_request SET status = 'rejected', decided_by = 'bob' WHERE id = 'adj_0'`,
    'prt_1',
    { adjustmentId: 'adj_0' },
  ],
  ['a new account', `INSERT INTO partner (id, name) VALUES ('prt_2', 'Q')`, 'prt_2'],
  ['an account', `UPDATE partner SET fee_plan = '{}' WHERE id = 'prt_1'`, 'prt_1'],
  ['a new product', `INSERT INTO product (code, bin, network) VALUES ('EUR', '424242', 'visa')`, 'EUR'],
  ['a product', `UPDATE product SET bin = '555555' WHERE code = 'USD'`, 'USD'],
  ['the products of an account', `INSERT INTO partner_product VALUES ('prt_1', 'USD')`, 'prt_1'],
  [
    'a new API key',
    `INSERT INTO api_key (id, partner_id, mode, hash, prefix, hint) VALUES ('key_2', 'prt_1', 'live', 'y', 'p', 'y')`,
    'key_2',
  ],
  ['an API key', `UPDATE api_key SET revoked_at = now() WHERE id = 'key_1'`, 'key_1'],
  ['the decision on an issuance', `UPDATE card SET decision = '{}' WHERE id = 'card_1'`, 'card_1'],
  ['the decision on a transfer', `UPDATE card_transfer SET decision = '{}' WHERE id = 'top_1'`, 'top_1'],
  ['the decision on a late answer', `UPDATE late_answer SET decision = '{}' WHERE id = 'top_2'`, 'top_2'],
  ['a deposit', `UPDATE deposit SET version = 3 WHERE id = 'dep_1'`, 'dep_1'],
  [
    "a deposit's payment",
    `UPDATE deposit_payment SET status = 'returned' WHERE deposit_id = 'dep_1'`,
    'dep_1',
  ],
  [
    "a deposit's resolution",
    `INSERT INTO deposit_resolution (deposit_id, version, outcome, credited_cents, reason, actor)
     VALUES ('dep_1', 1, 'credited', 500, 'r', 'ada')`,
    'dep_1',
  ],
];

describe("an operator's login", () => {
  let url: string;
  let client: pg.Client;

  before(async () => {
    url = await createTestDatabase();
    await asOwner(url, [
      // The rows are made up, and need neither claims nor postings.
      'SET session_replication_role = replica',
      `INSERT INTO partner (id, name) VALUES ('prt_1', 'P')`,
      `INSERT INTO product (code, bin, network, is_current) VALUES ('USD', '424242', 'visa', true)`,
      `INSERT INTO api_key (id, partner_id, mode, hash, prefix, hint) VALUES ('key_1', 'prt_1', 'live', 'x', 'p', 'x')`,
      `INSERT INTO adjustment_request (id, partner_id, mode, amount_cents, reason, requested_by)
       VALUES ('adj_0', 'prt_1', 'live', 900000, 'r', 'ada')`,
      `INSERT INTO card (id, partner_id, mode, status, external_ref, product_code, network, funding_cents, fees, created_at)
       VALUES ('card_1', 'prt_1', 'live', 'funding_pending', 'ref', 'USD', 'visa', 1000, '[]', now())`,
      `INSERT INTO card_transfer (id, partner_id, mode, card_id, direction, status, amount_cents, created_at)
       VALUES ('top_1', 'prt_1', 'live', 'card_1', 'topup', 'pending', 5, now())`,
      `INSERT INTO late_answer (id, kind) VALUES ('top_2', 'topup')`,
      `INSERT INTO deposit (id, partner_id, mode, network, contract_address, address_index, address, address_hash, amount_cents,
         created_at, expires_at)
       VALUES ('dep_1', 'prt_1', 'live', 'nile', 'c', 0, 'a', decode(repeat('00', 20), 'hex'), 500, now(), now())`,
      `INSERT INTO deposit_payment (network, tx_hash, log_index, deposit_id, partner_id, mode, value_micro_usdt, block_number,
         transaction_index, block_time)
       VALUES ('nile', '${HASH}', 0, 'dep_1', 'prt_1', 'live', 5000000, 1, 0, now())`,
    ]);
    client = await connectTo(operatorUrlOf(url));
  });
  after(() => client.end());

  /** Runs statements in one transaction. */
  async function commit(...statements: string[]): Promise<void> {
    try {
      await client.query('BEGIN');
      for (const statement of statements) await client.query(statement);
      await client.query('COMMIT');
    } finally {
      await client.query('ROLLBACK');
    }
  }

  const entry = (subject: string, detail: object = {}, action = 'made-up') =>
    `INSERT INTO audit_entry (id, actor, action, subject, detail)
     VALUES ('${newId('aud')}', 'ada', '${action}', '${subject}', '${JSON.stringify(detail)}')`;
  const REFUSED = { code: '23000', message: /needs an entry in the audit log, in the same transaction/ };

  for (const [what, statement, subject, detail] of CHANGES) {
    it(`changes ${what} only with its entry in the audit log`, async () => {
      for (const role of ['SET LOCAL ROLE NONE', 'SET LOCAL ROLE card_issuing_operator'])
        await assert.rejects(commit(role, statement), REFUSED);
      await assert.rejects(commit(statement, entry('prt_9', detail)), REFUSED);
      if (detail) await assert.rejects(commit(statement, entry(subject)), REFUSED);
      await assert.rejects(
        commit(`SAVEPOINT s`, entry(subject, detail), 'ROLLBACK TO s', statement),
        REFUSED,
      );
      // An entry of a transaction that is over says nothing about this one.
      await commit(entry(subject, detail));
      await assert.rejects(commit(statement), REFUSED);
      await commit(statement, entry(subject, detail));
    });
  }

  it('replaces the current product with the entry of its successor, which covers nothing else of it', async () => {
    const current = (await asOwner(url, 'SELECT code FROM product WHERE is_current'))[0]?.code;
    const replace = (more: string) => [
      `UPDATE product SET is_current = false ${more} WHERE code = '${current}'`,
      `INSERT INTO product (code, bin, network, is_current) VALUES ('GBP', '424242', 'visa', true)`,
      entry('GBP'),
    ];
    await assert.rejects(commit(...replace(`, bin = '1'`)), REFUSED);
    await assert.rejects(commit(replace('')[0] ?? ''), REFUSED);
    await commit(...replace(''));
  });

  it('is stamped on its adjustments, whatever the statement says', async () => {
    const insert = `INSERT INTO balance_adjustment (id, partner_id, mode, amount_cents, reason, login)
      VALUES ('adj_3', 'prt_1', 'live', 5, 'r', 'somebody')`;
    await commit(insert, entry('prt_1', { adjustmentId: 'adj_3' }));
    const [row] = await asOwner(url, `SELECT login FROM balance_adjustment WHERE id = 'adj_3'`);
    assert.equal(row?.login, new URL(operatorUrlOf(url)).username);
  });

  it("leaves a worker's login as it is, which records what it changes by itself nowhere", async () => {
    await using worker = await connectTo(workerUrlOf(url));
    await worker.query(`UPDATE card_transfer SET decision = NULL WHERE id = 'top_1'`);
  });
});
