import assert from 'node:assert/strict';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import type { Posting } from '../../ledger/posting.ts';
import { forkOf, openLedger, type TestLedger } from '../support/ledger/open-ledger.ts';
import { operation, transfer } from '../support/ledger/operations.ts';
import { lockWaits } from '../support/lock-waits.ts';
import { asOwner } from '../support/postgres.ts';
import { until, untilHolds } from '../support/until.ts';

/** Where a client's connection is lost, and what it is told when it brings the same posting again. */
const PLACES = [
  ['waits for the account', 'applied'],
  ['is applied, and its transaction has not committed', 'applied'],
  ['is committed, and its client has not been told', 'replayed'],
] as const;

describe('a posting whose connection is lost', () => {
  let ledger: TestLedger;
  before(async () => {
    ledger = await openLedger({ poolSize: PLACES.length });
  });
  after(async () => {
    assert.deepEqual(await checkLedger(ledger.em), []);
    await ledger.close();
  });

  const posting = (place: number, operationId: string, cents: number): Posting => ({
    ...operation(`${operationId}_${place}`, transfer('fund_faucet', cents)),
    partnerId: `prt_${place}`,
  });
  const totals = () =>
    Promise.all(
      PLACES.map(async (_, place) => (await readBalance(ledger.em, `prt_${place}`, 'test')).totalCents),
    );
  const outcomes = () =>
    Promise.all(
      PLACES.map(async (_, place) => (await applyPosting(ledger.em, posting(place, 'lost', 1))).outcome),
    );

  it(`takes effect once, wherever it stands: ${PLACES.map(([place]) => `it ${place}`).join('; ')}`, async () => {
    for (const place of PLACES.keys()) await applyPosting(ledger.em, posting(place, 'first', 100));
    const hangs = new Promise<never>(() => {});
    const lost = Promise.withResolvers<never>();
    let standing = 0;

    await ledger.owner.query('BEGIN');
    await ledger.owner.query(`SELECT FROM ledger.account WHERE id = 'prepaid/test/prt_0' FOR UPDATE`);
    const waiting = assert.rejects(applyPosting(ledger.em, posting(0, 'lost', 1)));
    const open = assert.rejects(
      forkOf(ledger.orm).transactional(async (tx) => {
        await applyPosting(tx, posting(1, 'lost', 1));
        standing += 1;
        await lost.promise;
      }),
    );
    void applyPosting(ledger.em, posting(2, 'lost', 1)).then(() => {
      standing += 1;
      return hangs;
    });
    await until('each stands at its place', async () => {
      return standing === 2 && (await lockWaits(ledger.databaseUrl)) === 1;
    });
    await asOwner(
      ledger.databaseUrl,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'ledger-test'`,
    );
    lost.reject(new Error('the connection is gone'));
    await Promise.all([waiting, open]);
    await ledger.owner.query('ROLLBACK');

    // Until the pool has noticed which connections are gone.
    await untilHolds(async () => assert.deepEqual(await totals(), [100, 100, 101]));
    assert.deepEqual(
      await outcomes(),
      PLACES.map(([, outcome]) => outcome),
    );
    assert.deepEqual(
      await outcomes(),
      PLACES.map(() => 'replayed'),
    );
    assert.deepEqual(await totals(), [101, 101, 101]);
  });
});
