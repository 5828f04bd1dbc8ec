import assert from 'node:assert/strict';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { checkLedger, type Violation } from '../../ledger/check-ledger.ts';
import { type Orm, openOrm } from '../../platform/db/orm.ts';
import { query } from '../../platform/db/sql.ts';
import { openLedger, type TestLedger } from '../support/ledger/open-ledger.ts';
import { cardHold, operation, resolve, transfer } from '../support/ledger/operations.ts';
import { PLANTS } from '../support/ledger/plants.ts';
import { ownerUrlOf } from '../support/postgres.ts';

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
