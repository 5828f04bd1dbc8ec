import assert from 'node:assert/strict';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { openLedger, type TestLedger } from '../support/ledger/open-ledger.ts';
import { cardHold, operation, transfer } from '../support/ledger/operations.ts';

describe('applyOperation, called by many at once,', () => {
  let ledger: TestLedger;
  const apply = (...args: Parameters<typeof operation>) => applyPosting(ledger.em, operation(...args));
  const balance = () => readBalance(ledger.em, 'prt_1', 'test');

  beforeEach(async () => {
    ledger = await openLedger();
    await apply('credit_1', transfer('fund_faucet', 1_000));
  });

  afterEach(async () => {
    assert.deepEqual(await checkLedger(ledger.em), []);
    await ledger.close();
  });

  it('spends a balance once, however many call it at the same time', async () => {
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) => apply(`load_${i}`, ...cardHold(90, 10, `card_${i}`))),
    );
    assert.equal(answers.filter((answer) => answer.outcome === 'applied').length, 10);
    assert.equal(answers.filter((answer) => answer.outcome === 'insufficient_funds').length, 20);
    assert.deepEqual(await balance(), { availableCents: 0, heldCents: 1_000, totalCents: 1_000 });
  });

  it('opens an account once, however many callers are the first', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        applyPosting(ledger.em, { ...operation(`first_${i}`, transfer('fund_usdt', 5)), mode: 'live' }),
      ),
    );
    assert.ok(answers.every((answer) => answer.outcome === 'applied'));
    assert.equal((await readBalance(ledger.em, 'prt_1', 'live')).totalCents, 100);
  });

  it('has one effect, however many apply the same operation', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => apply('same', transfer('topup', 300))),
    );
    assert.equal(answers.filter((answer) => answer.outcome === 'applied').length, 1);
    assert.equal(answers.filter((answer) => answer.outcome === 'replayed').length, 19);
    assert.equal((await balance()).totalCents, 700);
  });
});
