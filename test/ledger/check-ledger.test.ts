import assert from 'node:assert/strict';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { checkLedger, type Violation } from '../../ledger/check-ledger.ts';
import { type Orm, openOrm } from '../../platform/db/orm.ts';
import { query } from '../../platform/db/sql.ts';
import { openLedger, type TestLedger } from '../support/ledger/open-ledger.ts';
import { cardHold, operation, resolve, transfer } from '../support/ledger/operations.ts';
import { ownerUrlOf } from '../support/postgres.ts';

/** What is planted, and exactly the invariants that must notice it. */
const PLANTS: { plant: string; sql: string[]; breaks: number[] }[] = [
  {
    plant: 'an entry is gone',
    sql: [`DELETE FROM ledger.entry WHERE account_id = 'fee_revenue/test/prt_1' AND amount = 12`],
    breaks: [1, 8],
  },
  {
    plant: 'posted is changed',
    sql: [`UPDATE ledger.account SET posted = posted + 1 WHERE kind = 'card'`],
    breaks: [2],
  },
  {
    plant: 'a balance of the chain is changed',
    sql: [
      `UPDATE ledger.entry SET balance_after = balance_after + 1 WHERE account_id LIKE 'prepaid/%' AND account_version = 2`,
    ],
    breaks: [3],
  },
  {
    plant: 'the chain has a gap',
    sql: [
      `UPDATE ledger.entry SET account_version = 9 WHERE account_id LIKE 'card/%' AND account_version = 2`,
    ],
    breaks: [3],
  },
  {
    plant: 'version is changed',
    sql: [`UPDATE ledger.account SET version = version + 1 WHERE tracked`],
    breaks: [3],
  },
  {
    plant: 'an entry is left out of the chain',
    sql: [
      `UPDATE ledger.entry SET account_version = NULL, balance_after = NULL WHERE account_id LIKE 'card/%' AND account_version = 2`,
      `UPDATE ledger.account SET version = 1 WHERE kind = 'card'`,
    ],
    breaks: [3],
  },
  {
    plant: 'held is changed',
    sql: [`UPDATE ledger.account SET held = held + 1 WHERE kind = 'prepaid'`],
    breaks: [4],
  },
  {
    plant: 'a hold is resolved twice',
    sql: [
      'DROP INDEX ledger.transfer_resolves_once',
      `INSERT INTO ledger.transfer (id, fingerprint, operation_id, partner_id, mode, code, phase, pending_id, debit_id, credit_id, amount)
        SELECT gen_random_uuid(), '', operation_id, partner_id, mode, code, 'void', id, debit_id, credit_id, amount
        FROM ledger.transfer WHERE phase = 'pending' AND operation_id = 'posted' LIMIT 1`,
    ],
    breaks: [5, 6, 7],
  },
  {
    plant: 'a post exceeds its hold',
    sql: [
      `UPDATE ledger.transfer SET amount = amount - 1 WHERE phase = 'pending' AND operation_id = 'posted' AND code = 'issue_load'`,
    ],
    breaks: [5, 6, 7],
  },
  {
    plant: 'a code took the balance below its floor without being allowed to',
    sql: [`UPDATE ledger.code SET may_overdraw = false WHERE code = 'fee_decline'`],
    breaks: [6],
  },
  {
    plant: 'the answer kept for retries is changed',
    sql: [`UPDATE ledger.transfer SET prepaid_held = prepaid_held + 1 WHERE operation_id = 'credit'`],
    breaks: [6],
  },
  {
    plant: 'a card is below its floor',
    sql: [
      'ALTER TABLE ledger.account DROP CONSTRAINT card_not_overdrawn',
      `UPDATE ledger.account SET floor = 1000 WHERE kind = 'card'`,
    ],
    breaks: [6],
  },
  {
    plant: 'a transfer is said to be of another operation',
    sql: [`UPDATE ledger.transfer SET operation_id = 'other' WHERE operation_id = 'buy'`],
    breaks: [7],
  },
  {
    plant: 'a transfer of a call is gone',
    sql: [`DELETE FROM ledger.transfer WHERE operation_id = 'held' AND code = 'fee_funding'`],
    breaks: [4, 6, 7],
  },
  {
    plant: 'entries belong to no transfer',
    sql: [
      `INSERT INTO ledger.entry (transfer_id, side, account_id, amount) VALUES
        ('00000000-0000-0000-0000-000000000000', 'debit', 'network/test/prt_1', 5),
        ('00000000-0000-0000-0000-000000000000', 'credit', 'fee_revenue/test/prt_1', 5)`,
    ],
    breaks: [8],
  },
  {
    plant: 'an entry is on another account',
    sql: [`UPDATE ledger.entry SET account_id = 'faucet/test/prt_1' WHERE account_id = 'network/test/prt_1'`],
    breaks: [8],
  },
  {
    plant: 'an account changes hands',
    sql: [`UPDATE ledger.account SET partner_id = 'prt_2' WHERE kind = 'network'`],
    breaks: [1, 9],
  },
  {
    plant: 'a transfer is between accounts of the wrong kinds',
    sql: [`UPDATE ledger.code SET credit_kind = 'network' WHERE code = 'issue_load'`],
    breaks: [9],
  },
  {
    plant: 'an amount is zero',
    sql: [
      'ALTER TABLE ledger.transfer DROP CONSTRAINT transfer_amount_check',
      `UPDATE ledger.transfer SET amount = 0 WHERE operation_id = 'buy'`,
    ],
    breaks: [7, 8, 10],
  },
  {
    plant: 'held is negative',
    sql: [
      'ALTER TABLE ledger.account DROP CONSTRAINT account_held_check',
      `UPDATE ledger.account SET held = -1 WHERE kind = 'card'`,
    ],
    breaks: [4, 10],
  },
  {
    plant: 'a trigger is disabled',
    sql: ['ALTER TABLE ledger.transfer DISABLE TRIGGER append_only'],
    breaks: [11],
  },
  {
    plant: "a partition's trigger is gone",
    sql: ['DROP TRIGGER append_only ON ledger.entry_first'],
    breaks: [11],
  },
  { plant: 'a trigger is gone', sql: ['DROP TRIGGER balanced ON ledger.entry'], breaks: [11] },
  {
    plant: 'the application may write',
    sql: ['GRANT INSERT ON ledger.entry TO card_issuing_app'],
    breaks: [11],
  },
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

  for (const { plant, sql, breaks } of PLANTS) {
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
