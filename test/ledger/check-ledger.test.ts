import assert from 'node:assert/strict';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { checkLedger, type Violation } from '../../ledger/check-ledger.ts';
import { type Orm, openOrm } from '../../platform/db/orm.ts';
import { query } from '../../platform/db/sql.ts';
import { openLedger, type TestLedger } from '../support/ledger/open-ledger.ts';
import { cardHold, operation, resolve, transfer } from '../support/ledger/operations.ts';
import { ownerUrlOf } from '../support/postgres.ts';

/** What is planted, and exactly the invariants that must notice it. */
const PLANTS: [plant: string, breaks: number[], ...sql: string[]][] = [
  [
    'an entry is gone',
    [1, 8],
    `DELETE FROM ledger.entry WHERE account_id = 'fee_revenue/test/prt_1' AND amount = 12`,
  ],
  ['posted is changed', [2], `UPDATE ledger.account SET posted = posted + 1 WHERE kind = 'card'`],
  [
    'a balance of the chain is changed',
    [3],
    `UPDATE ledger.entry SET balance_after = balance_after + 1 WHERE account_id LIKE 'prepaid/%' AND account_version = 2`,
  ],
  [
    'the chain has a gap',
    [3],
    `UPDATE ledger.entry SET account_version = 9 WHERE account_id LIKE 'card/%' AND account_version = 2`,
  ],
  ['version is changed', [3], `UPDATE ledger.account SET version = version + 1 WHERE tracked`],
  [
    'an entry is left out of the chain',
    [3],
    `UPDATE ledger.entry SET account_version = NULL, balance_after = NULL WHERE account_id LIKE 'card/%' AND account_version = 2`,
    `UPDATE ledger.account SET version = 1 WHERE kind = 'card'`,
  ],
  ['held is changed', [4], `UPDATE ledger.account SET held = held + 1 WHERE kind = 'prepaid'`],
  [
    'a hold is resolved twice',
    [5, 6, 7],
    'DROP INDEX ledger.transfer_resolves_once',
    `INSERT INTO ledger.transfer (id, fingerprint, operation_id, partner_id, mode, code, phase, pending_id, debit_id, credit_id, amount)
        SELECT gen_random_uuid(), '', operation_id, partner_id, mode, code, 'void', id, debit_id, credit_id, amount
        FROM ledger.transfer WHERE phase = 'pending' AND operation_id = 'posted' LIMIT 1`,
  ],
  [
    'a post exceeds its hold',
    [5, 6, 7],
    `UPDATE ledger.transfer SET amount = amount - 1 WHERE phase = 'pending' AND operation_id = 'posted' AND code = 'issue_load'`,
  ],
  [
    'a code took the balance below its floor without being allowed to',
    [6],
    `UPDATE ledger.code SET may_overdraw = false WHERE code = 'fee_decline'`,
  ],
  [
    'the answer kept for retries is changed',
    [6],
    `UPDATE ledger.transfer SET prepaid_held = prepaid_held + 1 WHERE operation_id = 'credit'`,
  ],
  [
    'a card is below its floor',
    [6],
    'ALTER TABLE ledger.account DROP CONSTRAINT card_not_overdrawn',
    `UPDATE ledger.account SET floor = 1000 WHERE kind = 'card'`,
  ],
  [
    'a transfer is said to be of another operation',
    [7],
    `UPDATE ledger.transfer SET operation_id = 'other' WHERE operation_id = 'buy'`,
  ],
  [
    'a transfer of a call is gone',
    [4, 6, 7],
    `DELETE FROM ledger.transfer WHERE operation_id = 'held' AND code = 'fee_funding'`,
  ],
  [
    'entries belong to no transfer',
    [8],
    `INSERT INTO ledger.entry (transfer_id, side, account_id, amount) VALUES
        ('00000000-0000-0000-0000-000000000000', 'debit', 'network/test/prt_1', 5),
        ('00000000-0000-0000-0000-000000000000', 'credit', 'fee_revenue/test/prt_1', 5)`,
  ],
  [
    'an entry is on another account',
    [8],
    `UPDATE ledger.entry SET account_id = 'faucet/test/prt_1' WHERE account_id = 'network/test/prt_1'`,
  ],
  [
    'an account changes hands',
    [1, 9],
    `UPDATE ledger.account SET partner_id = 'prt_2' WHERE kind = 'network'`,
  ],
  [
    'a transfer is between accounts of the wrong kinds',
    [9],
    `UPDATE ledger.code SET credit_kind = 'network' WHERE code = 'issue_load'`,
  ],
  [
    'an amount is zero',
    [7, 8, 10],
    'ALTER TABLE ledger.transfer DROP CONSTRAINT transfer_amount_check',
    `UPDATE ledger.transfer SET amount = 0 WHERE operation_id = 'buy'`,
  ],
  [
    'held is negative',
    [4, 10],
    'ALTER TABLE ledger.account DROP CONSTRAINT account_held_check',
    `UPDATE ledger.account SET held = -1 WHERE kind = 'card'`,
  ],
  ['a trigger is disabled', [11], 'ALTER TABLE ledger.transfer DISABLE TRIGGER append_only'],
  ["a partition's trigger is gone", [11], 'DROP TRIGGER append_only ON ledger.entry_first'],
  ['a trigger is gone', [11], 'DROP TRIGGER balanced ON ledger.entry'],
  ['the application may write', [11], 'GRANT INSERT ON ledger.entry TO card_issuing_app'],
];

class Undo extends Error {}

describe('checkLedger', () => {
  let ledger: TestLedger;
  let owners: Orm;

  before(async () => {
    ledger = await openLedger();
    const databaseUrl = ownerUrlOf(ledger.databaseUrl);
    owners = await openOrm({ databaseUrl, poolSize: 1, onOwnerLogin: () => {} });
    const apply = (...args: Parameters<typeof operation>) => applyPosting(ledger.em, operation(...args));
    await apply('credit', transfer('fund_faucet', 1_000));
    await apply('posted', ...cardHold(600, 12));
    await apply('posted', ...resolve('post', cardHold(600, 12)));
    await apply('buy', transfer('purchase', 40));
    await apply('held', ...cardHold(300, 6, 'card_2'));
    await apply('voided', ...cardHold(50, 1, 'card_3'));
    await apply('voided', ...resolve('void', cardHold(50, 1, 'card_3')));
    await apply('decline', transfer('fee_decline', 100));
  });

  after(async () => {
    await owners.close();
    await ledger.close();
  });

  /** The violations while the statements' work is there, which is undone afterwards. */
  async function checkWith(statements: string[]): Promise<Violation[]> {
    let found: Violation[] = [];
    const run = owners.em.fork().transactional(async (tx) => {
      await query(tx, 'SET LOCAL ROLE postgres');
      await query(tx, 'SET LOCAL session_replication_role = replica');
      for (const statement of statements) await query(tx, statement);
      await query(tx, 'SET LOCAL ROLE card_issuing_app');
      found = await checkLedger(tx);
      throw new Undo();
    });
    await assert.rejects(run, Undo);
    return found;
  }

  it('finds nothing in a ledger whose invariants hold', async () => {
    assert.deepEqual(await checkWith([]), []);
  });

  for (const [plant, breaks, ...sql] of PLANTS) {
    it(`notices that ${plant}`, async () => {
      const found = await checkWith(sql);
      assert.deepEqual(
        [...new Set(found.map((violation) => violation.invariant))],
        breaks,
        JSON.stringify(found),
      );
      assert.ok(found.every(({ subject, message }) => subject.length > 0 && message.length > 0));
    });
  }
});
