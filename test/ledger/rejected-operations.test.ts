import assert from 'node:assert/strict';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { LedgerConflict, LedgerRejected, type RejectionReason } from '../../ledger/ledger-error.ts';
import type { Posting, Transfer } from '../../ledger/posting.ts';
import { openLedger, type TestLedger } from '../support/ledger/open-ledger.ts';
import { cardHold, operation, transfer } from '../support/ledger/operations.ts';

const MAX = Number.MAX_SAFE_INTEGER;

describe('applyOperation', () => {
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
