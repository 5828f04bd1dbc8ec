import assert from 'node:assert/strict';
import { IsolationLevel } from '@mikro-orm/core';
import { query } from '../../db/sql.ts';
import { applyOperation } from '../../ledger/apply-operation.ts';
import { isRetryable } from '../../ledger/is-retryable.ts';
import { readBalance } from '../../ledger/read-balance.ts';
import { openLedger, type TestLedger } from './support/open-ledger.ts';
import { operation, transfer } from './support/operations.ts';

describe('isRetryable', () => {
  let ledger: TestLedger;

  beforeEach(async () => {
    ledger = await openLedger();
    await applyOperation(ledger.em, operation('credit', transfer('fund_faucet', 1_000)));
    await applyOperation(ledger.em, operation('load', transfer('topup', 100)));
  });

  afterEach(() => ledger.close());

  /**
   * The owner holds the prepaid account, a block release gets the card and waits for the prepaid account, then the
   * owner, who is more patient, asks for the card.
   */
  async function deadlock(victim: () => Promise<unknown>): Promise<unknown> {
    const lock = (kind: string) =>
      ledger.owner.query(`SELECT FROM ledger.account WHERE kind = '${kind}' FOR UPDATE`);
    await ledger.owner.query(`SET deadlock_timeout = '1min'`);
    await ledger.owner.query('BEGIN');
    await lock('prepaid');
    const running = victim().catch((error: unknown) => error);
    await waitForLockWait();
    await lock('card');
    await ledger.owner.query('COMMIT');
    return running;
  }

  async function waitForLockWait(): Promise<void> {
    const waiting = `SELECT FROM pg_stat_activity WHERE application_name = 'ledger-test' AND wait_event_type = 'Lock'`;
    while ((await ledger.owner.query(waiting)).rowCount === 0)
      await new Promise((done) => setTimeout(done, 5));
  }

  const release = operation('release', transfer('block_release', 100));

  it('lets a deadlock be seen by a caller with a transaction', async () => {
    const em = ledger.orm.em.fork();
    const error = await deadlock(() => em.transactional((tx) => applyOperation(tx, release)));
    assert.equal((error as { code?: string }).code, '40P01');
    assert.ok(isRetryable(error));
    assert.equal((await applyOperation(ledger.em, release)).outcome, 'applied');
  });

  it('is why a deadlock outside a transaction goes unnoticed', async () => {
    assert.deepEqual(await deadlock(() => applyOperation(ledger.em, release)), {
      outcome: 'applied',
      prepaid: { availableCents: 1_000, heldCents: 0, totalCents: 1_000 },
    });
    // PostgreSQL counts them with a delay.
    const met = 'SELECT FROM pg_stat_database WHERE datname = current_database() AND deadlocks = 1';
    while ((await ledger.owner.query(met)).rowCount === 0) await new Promise((done) => setTimeout(done, 50));
  });

  it('holds for a serialisation failure, which is never a lack of funds', async () => {
    const run = ledger.orm.em.fork().transactional(
      async (tx) => {
        await readBalance(tx, 'prt_1', 'test');
        await applyOperation(ledger.em, operation('other', transfer('fee_decline', 1)));
        return applyOperation(tx, operation('mine', transfer('topup', 5_000)));
      },
      { isolationLevel: IsolationLevel.REPEATABLE_READ },
    );
    await assert.rejects(run, (error) => isRetryable(error) && (error as { code?: string }).code === '40001');
  });

  it('holds for a race for the first use of an account', async () => {
    const first = { ...operation('first', transfer('fund_usdt', 5)), mode: 'live' as const };
    const winner = ledger.orm.em.fork();
    await winner.begin();
    await applyOperation(winner, { ...first, operationId: 'winner' });
    const loser = ledger.orm.em
      .fork()
      .transactional((tx) => applyOperation(tx, first))
      .catch((error: unknown) => error);
    await waitForLockWait();
    await winner.commit();
    assert.ok(isRetryable(await loser));
    assert.equal((await applyOperation(ledger.em, first)).outcome, 'applied');
  });

  it('does not hold for other errors, and looks through wrapped ones', async () => {
    const failure = await query(ledger.em, 'SELECT 1/0').catch((error: unknown) => error);
    assert.ok(!isRetryable(failure));
    assert.ok(!isRetryable(Object.assign(new Error('elsewhere'), { code: '23505', schema: 'public' })));
    assert.ok(!isRetryable(undefined));
    assert.ok(isRetryable(new Error('wrapped', { cause: Object.assign(new Error('x'), { code: '40001' }) })));
  });
});
