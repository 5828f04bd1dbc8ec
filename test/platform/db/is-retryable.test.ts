import assert from 'node:assert/strict';
import { IsolationLevel } from '@mikro-orm/core';
import type pg from 'pg';
import { applyPosting } from '../../../ledger/apply-posting.ts';
import { readBalance } from '../../../ledger/balances.ts';
import { isRetryable } from '../../../platform/db/is-retryable.ts';
import { query } from '../../../platform/db/sql.ts';
import { forkOf, openLedger, type TestLedger } from '../../support/ledger/open-ledger.ts';
import { operation, transfer } from '../../support/ledger/operations.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { connectTo, ownerUrlOf } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';

describe('isRetryable', () => {
  let ledger: TestLedger;
  let other: pg.Client;

  beforeEach(async () => {
    ledger = await openLedger();
    await applyPosting(ledger.em, operation('credit', transfer('fund_faucet', 1_000)));
    await applyPosting(ledger.em, operation('load', transfer('topup', 100)));
    await applyPosting(ledger.em, operation('load_2', transfer('topup', 100, { cardId: 'card_2' })));
    other = await connectTo(ownerUrlOf(ledger.databaseUrl));
  });

  afterEach(async () => {
    await other.end();
    await ledger.close();
  });

  const lock = (session: pg.Client, id: string) =>
    session.query(`SELECT FROM ledger.account WHERE id = '${id}' FOR UPDATE`);

  const untilWaiting = (sessions: number) =>
    until(`${sessions} sessions wait`, async () => (await lockWaits(ledger.databaseUrl)) === sessions);

  /**
   * The release of two cards gets the first one, for which the owner waits patiently; then the second one; and then it
   * is the last to wait, for the prepaid account, which the owner has.
   */
  async function deadlock(victim: () => Promise<unknown>): Promise<unknown> {
    await ledger.owner.query(`SET deadlock_timeout = '1min'`);
    await ledger.owner.query('BEGIN');
    await other.query('BEGIN');
    await lock(ledger.owner, 'prepaid/test/prt_1');
    await lock(other, 'card/card_2');
    const running = victim().catch((error: unknown) => error);
    await untilWaiting(1);
    const owned = lock(ledger.owner, 'card/card_1');
    await untilWaiting(2);
    await other.query('COMMIT');
    await owned;
    await ledger.owner.query('COMMIT');
    return running;
  }

  const release = operation(
    'release',
    transfer('block_release', 100),
    transfer('block_release', 100, { step: 'second', cardId: 'card_2' }),
  );

  it('is true of a deadlock, which a caller with a transaction sees', async () => {
    const em = forkOf(ledger.orm);
    const error = await deadlock(() => em.transactional((tx) => applyPosting(tx, release)));
    assert.equal((error as { code?: string }).code, '40P01');
    assert.ok(isRetryable(error));
    assert.equal((await applyPosting(ledger.em, release)).outcome, 'applied');
  });

  it('makes a deadlock outside a transaction go unnoticed', async () => {
    assert.deepEqual(await deadlock(() => applyPosting(ledger.em, release)), {
      outcome: 'applied',
      prepaid: { availableCents: 1_000, heldCents: 0, totalCents: 1_000 },
    });
  });

  it('is true of a serialisation failure, which is never reported as a lack of funds', async () => {
    const run = forkOf(ledger.orm).transactional(
      async (tx) => {
        await readBalance(tx, 'prt_1', 'test');
        await applyPosting(ledger.em, operation('other', transfer('fee_decline', 1)));
        return applyPosting(tx, operation('mine', transfer('topup', 5_000)));
      },
      { isolationLevel: IsolationLevel.REPEATABLE_READ },
    );
    await assert.rejects(run, (error) => isRetryable(error) && (error as { code?: string }).code === '40001');
  });

  it('is true of a race for the first use of an account', async () => {
    const first = { ...operation('first', transfer('fund_usdt', 5)), mode: 'live' as const };
    const winner = forkOf(ledger.orm);
    await winner.begin();
    await applyPosting(winner, { ...first, operationId: 'winner' });
    const loser = forkOf(ledger.orm)
      .transactional((tx) => applyPosting(tx, first))
      .catch((error: unknown) => error);
    await untilWaiting(1);
    await winner.commit();
    assert.ok(isRetryable(await loser));
    assert.equal((await applyPosting(ledger.em, first)).outcome, 'applied');
  });

  it('is false for other errors, and looks into wrapped ones', async () => {
    const failure = await query(ledger.em, 'SELECT 1/0').catch((error: unknown) => error);
    assert.ok(!isRetryable(failure));
    assert.ok(!isRetryable(Object.assign(new Error('elsewhere'), { code: '23505', schema: 'public' })));
    assert.ok(!isRetryable(undefined));
    assert.ok(isRetryable(new Error('wrapped', { cause: Object.assign(new Error('x'), { code: '40001' }) })));
  });
});
