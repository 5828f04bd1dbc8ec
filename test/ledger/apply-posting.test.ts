import assert from 'node:assert/strict';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { LedgerConflict, LedgerRejected } from '../../ledger/ledger-error.ts';
import type { Transfer } from '../../ledger/posting.ts';
import { query } from '../../platform/db/sql.ts';
import { forkOf, openLedger, type TestLedger } from '../support/ledger/open-ledger.ts';
import { cardHold, operation, resolve, transfer } from '../support/ledger/operations.ts';

const MAX = Number.MAX_SAFE_INTEGER;

describe('applyOperation', () => {
  let ledger: TestLedger;
  const apply = (...args: Parameters<typeof operation>) => applyPosting(ledger.em, operation(...args));
  const balance = () => readBalance(ledger.em, 'prt_1', 'test');
  const cardCents = async (cardId = 'card_1') => {
    const rows = await query<{ posted: string }>(
      ledger.em,
      'SELECT posted FROM ledger.account WHERE card_id = $1',
      [cardId],
    );
    return rows[0] === undefined ? null : Number(rows[0].posted);
  };

  beforeEach(async () => {
    ledger = await openLedger();
    await apply('credit_1', transfer('fund_faucet', 1_000));
  });

  afterEach(async () => {
    assert.deepEqual(await checkLedger(ledger.em), []);
    await ledger.close();
  });

  it('returns the balance after it', async () => {
    assert.deepEqual(await apply('credit_2', transfer('adjustment_credit', 50)), {
      outcome: 'applied',
      prepaid: { availableCents: 1_050, heldCents: 0, totalCents: 1_050 },
    });
  });

  it('leaves zeros for a partner and mode without operations', async () => {
    const zeros = { availableCents: 0, heldCents: 0, totalCents: 0 };
    assert.deepEqual(await readBalance(ledger.em, 'prt_1', 'live'), zeros);
    assert.deepEqual(await readBalance(ledger.em, 'prt_2', 'test'), zeros);
  });

  it('returns null for an operation that does not change the prepaid balance', async () => {
    await apply('load', transfer('topup', 100));
    assert.deepEqual(await apply('buy', transfer('purchase', 30)), { outcome: 'applied', prepaid: null });
    assert.equal(await cardCents(), 70);
  });

  it('holds and then posts', async () => {
    const hold = cardHold(600, 12);
    const held = await apply('issue', ...hold);
    assert.deepEqual(held, {
      outcome: 'applied',
      prepaid: { availableCents: 388, heldCents: 612, totalCents: 1_000 },
    });
    assert.equal(await cardCents(), 0);
    assert.deepEqual(await apply('issue', ...resolve('post', hold)), {
      outcome: 'applied',
      prepaid: { availableCents: 388, heldCents: 0, totalCents: 388 },
    });
    assert.equal(await cardCents(), 600);
  });

  it('holds and then voids', async () => {
    const hold = cardHold(600, 12);
    await apply('issue', ...hold);
    await apply('issue', ...resolve('void', hold));
    assert.deepEqual(await balance(), { availableCents: 1_000, heldCents: 0, totalCents: 1_000 });
    assert.equal(await cardCents(), 0);
  });

  it('releases the rest of a hold after a post', async () => {
    await apply('issue', transfer('issue_load', 600, { phase: 'pending' }));
    await apply(
      'issue',
      transfer('issue_load', 250, { phase: 'post', step: 'post', resolves: 'issue_load' }),
    );
    assert.deepEqual(await balance(), { availableCents: 750, heldCents: 0, totalCents: 750 });
    assert.equal(await cardCents(), 250);
  });

  it('holds and posts in one call', async () => {
    const hold = cardHold(600, 12);
    assert.deepEqual(await apply('issue', ...hold, ...resolve('post', hold)), {
      outcome: 'applied',
      prepaid: { availableCents: 388, heldCents: 0, totalCents: 388 },
    });
    const again = transfer('issue_load', 600, { phase: 'void', step: 'again', resolves: 'issue_load' });
    await assert.rejects(apply('issue', again), LedgerRejected);
  });

  it('refuses an operation as a whole if the money is not available, and leaves no trace', async () => {
    await apply('first', ...cardHold(600, 12));
    assert.deepEqual(await apply('second', ...cardHold(388, 1, 'card_2')), { outcome: 'insufficient_funds' });
    assert.deepEqual(await balance(), { availableCents: 388, heldCents: 612, totalCents: 1_000 });
    assert.equal(await cardCents('card_2'), null);
    assert.deepEqual(await apply('buy', transfer('purchase', 1)), { outcome: 'insufficient_funds' });
    assert.equal((await apply('second', ...cardHold(387, 1, 'card_2'))).outcome, 'applied');
  });

  it('lets only codes that may overdraw go below the floor', async () => {
    await apply('fee', transfer('fee_transaction', 1_200));
    assert.equal((await balance()).availableCents, -200);
    await apply('decline', transfer('fee_decline', 5));
    await apply('late', transfer('late_debit', 95));
    assert.equal((await balance()).totalCents, -300);
    for (const code of [
      'topup',
      'fee_funding',
      'fee_activation',
      'issue_load',
      'adjustment_debit',
    ] as const) {
      assert.deepEqual(await apply(`not_${code}`, transfer(code, 1)), { outcome: 'insufficient_funds' });
    }
  });

  it('posts a hold even if fees have overdrawn the balance since', async () => {
    const hold = cardHold(990, 10);
    await apply('issue', ...hold);
    await apply('fee', transfer('fee_decline', 25));
    await apply('issue', ...resolve('post', hold));
    assert.deepEqual(await balance(), { availableCents: -25, heldCents: 0, totalCents: -25 });
  });

  it('answers a retry as it answered the first time', async () => {
    const hold = cardHold(600, 12);
    const first = await apply('issue', ...hold);
    await apply('issue', ...resolve('post', hold));
    await apply('credit_2', transfer('fund_faucet', 7));
    const before = await balance();
    assert.deepEqual(await apply('issue', ...hold), { ...first, outcome: 'replayed' });
    assert.deepEqual(await balance(), before);
    await apply('load', transfer('topup', 5));
    await apply('buy', transfer('purchase', 5));
    assert.deepEqual(await apply('buy', transfer('purchase', 5)), { outcome: 'replayed', prepaid: null });
  });

  it('accepts amounts up to the largest safe integer', async () => {
    const other = (operationId: string, ...transfers: Transfer[]) =>
      applyPosting(ledger.em, { ...operation(operationId, ...transfers), partnerId: 'prt_2' });
    assert.deepEqual(await other('all', transfer('adjustment_credit', MAX)), {
      outcome: 'applied',
      prepaid: { availableCents: MAX, heldCents: 0, totalCents: MAX },
    });
    assert.equal((await other('load', transfer('topup', MAX, { cardId: 'card_9' }))).outcome, 'applied');
    assert.equal(await cardCents('card_9'), MAX);
  });

  it("joins its caller's transaction, which stays usable after a refusal", async () => {
    await forkOf(ledger.orm).transactional(async (tx) => {
      assert.deepEqual(await applyPosting(tx, operation('big', transfer('topup', 5_000))), {
        outcome: 'insufficient_funds',
      });
      await assert.rejects(
        applyPosting(tx, operation('credit_1', transfer('fund_faucet', 1))),
        LedgerConflict,
      );
      await assert.rejects(
        applyPosting(tx, operation('x', transfer('purchase', 1, { phase: 'pending' }))),
        LedgerRejected,
      );
      assert.equal((await applyPosting(tx, operation('small', transfer('topup', 50)))).outcome, 'applied');
      assert.equal((await readBalance(tx, 'prt_1', 'test')).totalCents, 950);
      assert.equal((await balance()).totalCents, 1_000);
    });
    assert.equal((await balance()).totalCents, 950);

    const undone = forkOf(ledger.orm).transactional(async (tx) => {
      await applyPosting(tx, operation('undone', transfer('topup', 50)));
      throw new Error('the caller changed its mind');
    });
    await assert.rejects(undone, /changed its mind/);
    assert.equal((await balance()).totalCents, 950);
    assert.equal((await apply('undone', transfer('topup', 50))).outcome, 'applied');
  });
});
