import assert from 'node:assert/strict';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { LedgerConflict, LedgerRejected } from '../../ledger/ledger-error.ts';
import type { Transfer } from '../../ledger/operation.ts';
import { createOperationQueue, type OperationQueue } from '../../ledger/operation-queue.ts';
import { readBalance } from '../../ledger/read-balance.ts';
import { openLedger, type TestLedger } from './support/open-ledger.ts';
import { operation, transfer } from './support/operations.ts';

describe('createOperationQueue', () => {
  let ledger: TestLedger;
  let queue: OperationQueue;
  const apply = (...args: Parameters<typeof operation>) => queue.apply(operation(...args));

  beforeEach(async () => {
    ledger = await openLedger();
    queue = createOperationQueue(ledger.em);
  });

  afterEach(async () => {
    assert.deepEqual(await checkLedger(ledger.em), []);
    await ledger.close();
  });

  const transactions = async () =>
    Number(
      (await ledger.owner.query('SELECT count(DISTINCT xmin::text) AS count FROM ledger.transfer')).rows[0]
        .count,
    );

  it('takes along in one call what came in during the one before', async () => {
    const answers = await Promise.all(
      Array.from({ length: 250 }, (_, i) => apply(`c_${i}`, transfer('fund_usdt', 2))),
    );
    assert.deepEqual(
      answers.map((answer) => answer.outcome === 'applied' && answer.prepaid?.totalCents),
      Array.from({ length: 250 }, (_, i) => (i + 1) * 2),
    );
    // The first alone, then at most 100 at a time.
    assert.equal(await transactions(), 4);
  });

  it('answers each operation of a call for itself', async () => {
    const outcomes = await Promise.allSettled([
      apply('credit', transfer('fund_usdt', 100)),
      apply('load', transfer('topup', 60)),
      apply('too_much', transfer('topup', 41)),
      apply('load', transfer('topup', 60)),
      apply('load', transfer('topup', 61)),
      apply('wrong', transfer('topup', 1, { phase: 'pending', debit: 'network' })),
      apply('bad', transfer('topup', 0)),
      apply('rest', transfer('topup', 40, { cardId: 'card_2' })),
    ]);
    const told = outcomes.map((outcome) =>
      outcome.status === 'fulfilled' ? outcome.value.outcome : outcome.reason,
    );
    assert.deepEqual(told.slice(0, 4), ['applied', 'applied', 'insufficient_funds', 'replayed']);
    assert.ok(told[4] instanceof LedgerConflict);
    assert.ok(told[5] instanceof LedgerRejected && told[5].reason === 'wrong_accounts');
    assert.ok(told[6] instanceof LedgerRejected && told[6].reason === 'malformed');
    assert.equal(told[7], 'applied');
    assert.equal((await readBalance(ledger.em, 'prt_1', 'test')).totalCents, 0);
  });

  it('tells everyone in a call that it failed, and goes on', async () => {
    await apply('credit', transfer('fund_usdt', 100));
    const broken = transfer('topup', 1, { phase: 'bogus' as Transfer['phase'] });
    const outcomes = await Promise.allSettled([
      apply('alone', transfer('topup', 1)),
      apply('with_broken', transfer('topup', 1)),
      apply('broken', broken),
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status),
      ['fulfilled', 'rejected', 'rejected'],
    );
    const again = await apply('with_broken', transfer('topup', 1));
    assert.equal(again.outcome === 'applied' && again.prepaid?.totalCents, 98);
  });

  it('does not make one account wait for another', async () => {
    await apply('credit', transfer('fund_usdt', 100));
    await ledger.owner.query('BEGIN');
    await ledger.owner.query(`SELECT FROM ledger.account WHERE id = 'prepaid/test/prt_1' FOR UPDATE`);
    const waiting = apply('load', transfer('topup', 1));
    const other = await queue.apply({ ...operation('credit_2', transfer('fund_usdt', 7)), mode: 'live' });
    assert.equal(other.outcome, 'applied');
    await ledger.owner.query('COMMIT');
    assert.equal((await waiting).outcome, 'applied');
  });
});
