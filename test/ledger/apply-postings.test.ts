import assert from 'node:assert/strict';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { encodePosting, type Posting, transferId } from '../../ledger/posting.ts';
import { query } from '../../platform/db/sql.ts';
import { openLedger, type TestLedger } from '../support/ledger/open-ledger.ts';
import { operation, transfer } from '../support/ledger/operations.ts';

/** The function trusts nobody: what our own module can't send is turned down too. */
describe('ledger.apply_operations, called with what the module would never send,', () => {
  let ledger: TestLedger;

  before(async () => {
    ledger = await openLedger();
    await applyPosting(ledger.em, operation('credit', transfer('fund_faucet', 1_000)));
    await applyPosting(ledger.em, operation('held', transfer('topup', 100, { phase: 'pending' })));
  });

  after(() => ledger.close());

  async function call(sent: Posting, change: Record<string, unknown> = {}): Promise<unknown> {
    const steps = encodePosting(sent).steps.map((step) => ({ operation: 0, ...step, ...change }));
    const [row] = await query<{ outcome: string; reason: string | null }>(
      ledger.em,
      'SELECT outcome, reason FROM ledger.apply_operations($1)',
      [JSON.stringify(steps)],
    );
    return row?.reason ?? row?.outcome;
  }

  const topUp = operation('bad', transfer('topup', 10));

  it('refuses a hold of another operation', async () => {
    const post = transfer('topup', 100, { phase: 'post', step: 'post', resolves: 'x' });
    const pendingId = transferId('held', 'topup');
    assert.equal(await call(operation('bad', post), { pending_id: pendingId }), 'unknown_hold');
  });

  it('refuses accounts of another owner, whatever the transfer claims', async () => {
    assert.equal(await call(topUp, { debit_id: 'prepaid/live/prt_1' }), 'other_owner');
    assert.equal(await call(topUp, { debit_id: 'prepaid/test/prt_2' }), 'other_owner');
    assert.equal(await call(topUp, { partner_id: 'prt_2' }), 'other_owner');
    assert.equal(await call(topUp, { mode: 'live' }), 'other_owner');
    assert.equal(await call(topUp, { credit_id: 'prepaid/test/prt_1' }), 'wrong_accounts');
  });

  it('fails for an amount, an account or a phase that it does not know', async () => {
    const fails: [Record<string, unknown>, object][] = [
      [{ amount: 0 }, { constraint: 'transfer_amount_check' }],
      [{ amount: -5 }, { constraint: 'transfer_amount_check' }],
      [{ amount: 1.5 }, { code: '22P02' }],
      [{ amount: null }, { code: '23502' }],
      [{ debit_id: 'gold/test/prt_1' }, { code: '22P02' }],
      [{ phase: 'done' }, { code: '22P02' }],
      [{ pending_id: transferId('held', 'topup') }, { constraint: 'transfer_check' }],
    ];
    for (const [change, error] of fails)
      await assert.rejects(call(topUp, change), error, JSON.stringify(change));
    assert.deepEqual(await checkLedger(ledger.em), []);
  });

  it('returns nothing for no operations', async () => {
    assert.deepEqual(await query(ledger.em, 'SELECT * FROM ledger.apply_operations($1)', ['[]']), []);
  });
});
