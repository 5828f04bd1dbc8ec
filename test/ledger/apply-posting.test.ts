import assert from 'node:assert/strict';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { LedgerConflict, LedgerRejected, type RejectionReason } from '../../ledger/ledger-error.ts';
import type { Posting, Transfer } from '../../ledger/posting.ts';
import { query } from '../../platform/db/sql.ts';
import { forkOf, openLedger, type TestLedger } from '../support/ledger/open-ledger.ts';
import { cardHold, operation, resolve, transfer } from '../support/ledger/operations.ts';

const MAX = Number.MAX_SAFE_INTEGER;

describe('applyPosting', () => {
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

  const HOLD = cardHold(600, 12);
  const PART = transfer('issue_load', 250, { phase: 'post', step: 'part', resolves: 'issue_load' });
  const held = { availableCents: 388, heldCents: 612, totalCents: 1_000 };
  const posted = { availableCents: 388, heldCents: 0, totalCents: 388 };
  for (const [what, calls, prepaid, onCard] of [
    ['holds', [HOLD], held, 0],
    ['holds and then posts', [HOLD, resolve('post', HOLD)], posted, 600],
    [
      'holds and then voids',
      [HOLD, resolve('void', HOLD)],
      { availableCents: 1_000, heldCents: 0, totalCents: 1_000 },
      0,
    ],
    [
      'releases the rest of a hold after a post',
      [[transfer('issue_load', 600, { phase: 'pending' })], [PART]],
      { availableCents: 750, heldCents: 0, totalCents: 750 },
      250,
    ],
    ['holds and posts in one call', [[...HOLD, ...resolve('post', HOLD)]], posted, 600],
  ] as const) {
    it(what, async () => {
      const answers = [];
      for (const call of calls) answers.push(await apply('issue', ...call));
      assert.deepEqual(answers.at(-1), { outcome: 'applied', prepaid });
      assert.equal(await cardCents(), onCard);
    });
  }

  it('resolves a hold once that was posted in the same call', async () => {
    await apply('issue', ...HOLD, ...resolve('post', HOLD));
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

  it('spends a balance once, however many callers there are at once', async () => {
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

  it('rejects an id that was used with other content', async () => {
    const [load, fee] = cardHold(600, 12) as [Transfer, Transfer];
    await apply('issue', load, fee);
    const others: Transfer[][] = [
      [load],
      [fee, load],
      [{ ...load, amountCents: 601 }, fee],
      [{ ...load, credit: { cardId: 'card_2' } }, fee],
      [load, fee, transfer('fee_activation', 1, { phase: 'pending' })],
      [transfer('fee_activation', 1, { phase: 'pending' }), load, fee],
    ];
    for (const transfers of others) {
      await assert.rejects(apply('issue', ...transfers), LedgerConflict);
    }
    const elsewhere = { ...operation('issue', load, fee), partnerId: 'prt_2' };
    await assert.rejects(applyPosting(ledger.em, elsewhere), LedgerConflict);
    assert.deepEqual(await balance(), { availableCents: 388, heldCents: 612, totalCents: 1_000 });
  });

  async function rejects(reason: RejectionReason, rejected: Posting): Promise<void> {
    await assert.rejects(
      applyPosting(ledger.em, rejected),
      (error) => error instanceof LedgerRejected && error.reason === reason,
      reason,
    );
  }

  it('rejects operations that its rules forbid, whatever the balance', async () => {
    const load = transfer('issue_load', 100, { phase: 'pending' });
    await apply('issue', load);
    await applyPosting(ledger.em, {
      ...operation('credit_2', transfer('adjustment_credit', 500)),
      partnerId: 'prt_2',
    });
    const before = await balance();
    const bad = (...transfers: Transfer[]) => operation('bad', transfer('fee_decline', 1), ...transfers);

    await rejects('unknown_code', bad({ ...load, code: 'gift' as Transfer['code'] }));
    await rejects('wrong_accounts', bad({ ...load, credit: 'network' }));
    await rejects('wrong_accounts', bad({ ...load, debit: 'faucet' }));
    await rejects('other_owner', { ...bad(load), partnerId: 'prt_2' });
    await rejects('other_owner', { ...bad(load), mode: 'live' });
    await rejects('wrong_mode', bad(transfer('fund_usdt', 1)));
    await rejects('wrong_mode', { ...operation('live', transfer('fund_faucet', 1)), mode: 'live' });
    await rejects('hold_not_allowed', bad(transfer('purchase', 1, { phase: 'pending' })));
    const post = transfer('issue_load', 100, { phase: 'post', step: 'post', resolves: 'issue_load' });
    await rejects('unknown_hold', bad(post));
    await rejects('unknown_hold', operation('issue', { ...post, resolves: 'never' }));
    await rejects('unknown_hold', operation('credit_1', { ...post, resolves: 'fund_faucet' }));
    await rejects('hold_differs', operation('issue', { ...post, amountCents: 101 }));
    await rejects('hold_differs', operation('issue', { ...post, phase: 'void', amountCents: 99 }));
    await rejects('hold_differs', operation('issue', { ...post, credit: { cardId: 'card_2' } }));
    await rejects('hold_differs', operation('issue', { ...post, code: 'topup' }));
    await rejects('balance_out_of_range', bad(transfer('adjustment_credit', MAX)));
    assert.deepEqual(await balance(), before);
    await apply('issue', post);
    await rejects('hold_resolved', operation('issue', { ...post, step: 'void', phase: 'void' }));
  });

  it('rejects malformed operations before it sends them', async () => {
    const fee = transfer('fee_decline', 1);
    for (const amountCents of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, MAX + 1]) {
      await rejects('malformed', operation('bad', { ...fee, amountCents }));
    }
    await rejects('malformed', operation('bad'));
    await rejects('malformed', operation('bad', fee, fee));
    await rejects('malformed', operation('bad', { ...fee, resolves: 'x' }));
    await rejects('malformed', operation('bad', { ...fee, phase: 'post' }));
    await rejects('malformed', operation('', fee));
    await rejects('malformed', operation('a b', fee));
    await rejects('malformed', { ...operation('bad', fee), partnerId: 'prt_\0' });
    await rejects('malformed', operation('bad', transfer('topup', 1, { cardId: '\ud800' })));
    await rejects(
      'malformed',
      operation('bad', ...Array.from({ length: 101 }, (_, i) => ({ ...fee, step: `${i}` }))),
    );
  });
});
