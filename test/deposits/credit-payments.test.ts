import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beginScan } from '../../deposits/chain-scan.ts';
import { creditPayments, findUncredited } from '../../deposits/credit-payments.ts';
import { expireDeposits } from '../../deposits/expire.ts';
import type { FoundPayment } from '../../deposits/take-blocks.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { column } from '../support/column.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { CUTS, cutCommits } from '../support/crash/cut-commits.ts';
import { takeNextBlock } from '../support/deposits/next-block.ts';
import { hoursFromNow, paymentFor, readDeposits, seedDeposits } from '../support/deposits/seed-deposits.ts';
import { countStatements } from '../support/statements.ts';

const FIRST_CENTS = 1_000;
const live = (partnerId: string) => ({ partnerId, mode: 'live' }) as const;
const LAST = hoursFromNow(1);

describe('creditPayments', () => {
  let commands: TestCommands;
  let partnerId: string;
  beforeEach(async () => {
    commands = await openCommands();
    partnerId = await commands.createFundedPartner(FIRST_CENTS);
    await beginScan(commands.context.orm, 'private', { number: 100, hash: null, time: null });
  });
  afterEach(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  const em = () => commands.context.orm.em.fork();
  const credit = (...ids: string[]) => creditPayments(commands.context.orm, ids);

  /** As the scan does with the next block. */
  const find = (...payments: FoundPayment[]) => takeNextBlock(commands.context.orm, payments);

  async function left(id: string) {
    const deposit = (await readDeposits(commands.owner)).get(id);
    assert.ok(deposit);
    const { status, credited_cents, received_micro_usdt, is_confirmed, is_in_review, payments } = deposit;
    assert.equal(is_confirmed, credited_cents !== '0');
    assert.equal(is_in_review, status === 'needs_review');
    const { rows } = await commands.owner.query(
      `SELECT body FROM event WHERE type = 'deposit.confirmed' AND body LIKE '%' || $1 || '%'`,
      [id],
    );
    return { status, cents: credited_cents, micro: received_micro_usdt, payments, events: rows.length };
  }

  const creditedCents = async (account = partnerId) =>
    (await readBalance(em(), account, 'live')).totalCents - FIRST_CENTS;

  it('credits the exact amount once, with ledger, deposit, payment and event together', async () => {
    const [id = ''] = await seedDeposits(commands.owner, { partnerId });
    const payment = paymentFor(id, partnerId);
    await find(payment);
    assert.deepEqual(await credit(id), { judged: 1, credited: 1 });
    assert.deepEqual(await credit(id), { judged: 0, credited: 0 });
    const confirmed = {
      ...{ status: 'confirmed', cents: '2500', micro: '25000000', payments: ['credited'], events: 1 },
    };
    assert.deepEqual(await left(id), confirmed);
    assert.equal(await creditedCents(), 2_500);
    const { rows } = await commands.owner.query(
      `SELECT t.operation_id, t.code, e.body, e.card_id, d.status AS delivery, p.version, p.told_version
       FROM ledger.transfer t, event e JOIN delivery d ON d.event_id = e.id, deposit p
       WHERE t.code = 'fund_usdt' AND e.type = 'deposit.confirmed' AND p.id = $1`,
      [id],
    );
    const [{ body, ...row }] = rows;
    assert.deepEqual(row, {
      ...{ operation_id: `deposit/private/${payment.txHash}/0/${id}`, code: 'fund_usdt', card_id: null },
      ...{ delivery: 'no_endpoint', version: 2, told_version: 0 },
    });
    const { type, mode, data } = JSON.parse(body);
    assert.deepEqual([type, mode, Object.keys(data)], ['deposit.confirmed', 'live', ['deposit']]);
    // All of it is compared with what partners read in test-deposits.test.ts.
    const { status, credited_amount, tx_hash, payments } = data.deposit;
    assert.deepEqual([status, credited_amount, tx_hash], ['confirmed', 2_500, payment.txHash]);
    assert.deepEqual(column(payments, 'status'), ['credited']);
  });

  it('leaves inexact, late or repeated payments to an operator, with the reason of each', async () => {
    const txHash = randomBytes(32).toString('hex');
    const of = (...values: bigint[]) => values.map((valueMicroUsdt) => ({ valueMicroUsdt }));
    /** Why each payment is in review; null if it is credited. */
    const cases: [string, Partial<Omit<FoundPayment, 'owner'>>[], (string | null)[]][] = [
      ['short', of(24_990_000n), ['other_amount']],
      ['over', of(25_010_000n), ['other_amount']],
      ['a sub-cent more', of(25_000_001n), ['other_amount']],
      ['less than a cent', of(1n), ['other_amount']],
      ['more than there are cents', of(2n ** 250n), ['other_amount']],
      ['late by a millisecond', [{ blockTime: new Date(LAST.getTime() + 1) }], ['late']],
      ['in the last millisecond', [{ blockTime: LAST }], [null]],
      ['two in one transaction', [{ txHash }, { txHash, logIndex: 2 }], [null, 'already_paid']],
      [
        'the second before the first',
        [{ transactionIndex: 9 }, { transactionIndex: 3 }],
        [null, 'already_paid'],
      ],
      ['parts that add up', of(15_000_000n, 10_000_000n), ['other_amount', 'other_amount']],
      ['short, then exact', [...of(1_000_000n), { transactionIndex: 1 }], ['other_amount', null]],
    ];
    const ids = await seedDeposits(commands.owner, { partnerId, count: cases.length, expiresAt: LAST });
    const payments = cases.map(([, each], index) =>
      each.map((more) => paymentFor(ids[index] ?? '', partnerId, more)),
    );
    await find(...payments.flat());
    await credit(...ids);
    let credited = 0;
    for (const [index, [name, , review]] of cases.entries()) {
      const isCredited = review.includes(null);
      if (isCredited) credited += 2_500;
      const sum = (payments[index] ?? []).reduce((total, one) => total + one.valueMicroUsdt, 0n);
      assert.deepEqual(
        await left(ids[index] ?? ''),
        {
          status: review.every((reason) => reason === null) ? 'confirmed' : 'needs_review',
          cents: isCredited ? '2500' : '0',
          micro: String(sum),
          payments: review.map((reason) => (reason === null ? 'credited' : `in_review ${reason}`)),
          events: isCredited ? 1 : 0,
        },
        name,
      );
    }
    assert.equal(await creditedCents(), credited);
  });

  it('finds a second payment of a confirmed or expired deposit, however late', async () => {
    const [paid = ''] = await seedDeposits(commands.owner, { partnerId });
    const [expired = '', inTime = ''] = await seedDeposits(commands.owner, {
      partnerId,
      count: 2,
      expiresAt: hoursFromNow(-1),
    });
    await find(paymentFor(paid, partnerId));
    await credit(paid);
    await expireDeposits(commands.context.orm, { ...live(partnerId), depositIds: [expired, inTime] });
    assert.equal((await left(expired)).status, 'expired');
    await find(
      paymentFor(paid, partnerId, { blockNumber: 102 }),
      paymentFor(expired, partnerId, { blockNumber: 102 }),
      // As after a rescan: it was made in time.
      paymentFor(inTime, partnerId, { blockNumber: 102, blockTime: hoursFromNow(-2) }),
    );
    await credit(paid, expired, inTime);
    assert.deepEqual(await left(paid), {
      ...{ status: 'needs_review', cents: '2500', micro: '50000000', events: 1 },
      payments: ['credited', 'in_review already_paid'],
    });
    assert.deepEqual((await left(expired)).payments, ['in_review late']);
    assert.equal((await left(expired)).status, 'needs_review');
    assert.equal((await left(inTime)).status, 'confirmed');
    assert.equal(await creditedCents(), 5_000);
  });

  it('leaves a payment to an operator that would take the balance past the largest integer, and credits the others', async () => {
    const most = Number.MAX_SAFE_INTEGER - FIRST_CENTS;
    const [large = ''] = await seedDeposits(commands.owner, { partnerId, amountCents: most });
    const [small = '', last = ''] = await seedDeposits(commands.owner, { partnerId, count: 2 });
    await find(
      paymentFor(large, partnerId, { valueMicroUsdt: BigInt(most) * 10_000n }),
      paymentFor(small, partnerId),
    );
    await credit(large, small);
    const [one, other] = [await left(large), await left(small)];
    assert.deepEqual([one.status, other.status], ['confirmed', 'needs_review']);
    assert.deepEqual(other.payments, ['in_review balance_out_of_range']);
    assert.equal(await creditedCents(), most);
    await find(paymentFor(last, partnerId));
    assert.deepEqual(await credit(last), { judged: 1, credited: 0 });
  });

  it('credits each payment once if several try at the same time', async () => {
    const ids = await seedDeposits(commands.owner, { partnerId, count: 30 });
    await find(...ids.map((id) => paymentFor(id, partnerId)));
    const all = async () => {
      for (const id of ids) await credit(id);
    };
    await Promise.all([all(), all(), credit(...ids)]);
    assert.equal(await creditedCents(), 30 * 2_500);
  });

  it('takes effect or not if the connection is lost around the commit, and the next try completes it', async () => {
    const cuts = cutCommits();
    for (const [when, hasHappened] of CUTS) {
      const [id = ''] = await seedDeposits(commands.owner, { partnerId });
      await find(paymentFor(id, partnerId));
      cuts.arm(when, id);
      await assert.rejects(credit(id), /terminated/);
      assert.equal((await left(id)).status, hasHappened ? 'confirmed' : 'awaiting_payment');
      await credit(id);
      assert.deepEqual(await left(id), {
        ...{ status: 'confirmed', cents: '2500', micro: '25000000', payments: ['credited'], events: 1 },
      });
    }
    cuts.undo();
    assert.equal(await creditedCents(), 5_000);
  });

  it('delays only the account whose balance somebody has locked', async () => {
    const other = await commands.createFundedPartner(FIRST_CENTS);
    const [held = ''] = await seedDeposits(commands.owner, { partnerId });
    const [free = ''] = await seedDeposits(commands.owner, { partnerId: other });
    await find(paymentFor(held, partnerId), paymentFor(free, other));
    {
      await using holder = await commands.connect();
      await holder.query('BEGIN');
      await holder.query(`SELECT FROM ledger.account WHERE id = $1 FOR UPDATE`, [
        `prepaid/live/${partnerId}`,
      ]);
      const waiting = credit(held);
      await credit(free);
      assert.equal(await creditedCents(other), 2_500);
      // The scan records for a deposit that is being credited.
      await find(paymentFor(held, partnerId, { blockNumber: 102 }));
      await holder.query('ROLLBACK');
      assert.deepEqual(await waiting, { judged: 1, credited: 1 });
    }
    await credit(held);
    assert.deepEqual((await left(held)).payments, ['credited', 'in_review already_paid']);
  });

  it('needs as many statements for a hundred deposits as for one, and takes dust in parts', async () => {
    const ids = await seedDeposits(commands.owner, { partnerId, count: 100 });
    const dusty = ids[0] ?? '';
    const dust = Array.from({ length: 1_200 }, (_, index) =>
      paymentFor(dusty, partnerId, { valueMicroUsdt: 1n, transactionIndex: index + 1 }),
    );
    await find(...ids.map((id) => paymentFor(id, partnerId)), ...dust);
    const statements = countStatements(commands.operatorUrl);
    try {
      assert.deepEqual(await credit(...ids), { judged: 599, credited: 100 });
    } finally {
      statements.stop();
    }
    assert.equal(statements.texts.length, 7);
    while ((await credit(dusty)).judged > 0);
    const { status, cents, micro, payments, events } = await left(dusty);
    assert.deepEqual([status, cents, micro, events], ['needs_review', '2500', '25001200', 1]);
    assert.equal(payments.filter((one) => one === 'in_review other_amount').length, 1_200);
    assert.equal(await creditedCents(), 100 * 2_500);
  });

  it('gets its work from each account in turn, whatever the backlog of one', async () => {
    const others = [await commands.createFundedPartner(1), await commands.createFundedPartner(1)];
    const accounts = [partnerId, ...others].sort();
    const ids = new Map<string, string[]>();
    for (const [index, account] of accounts.entries()) {
      ids.set(
        account,
        await seedDeposits(commands.owner, { partnerId: account, count: index === 0 ? 150 : 2 }),
      );
    }
    await find(...[...ids].flatMap(([account, own]) => own.map((id) => paymentFor(id, account))));
    const all = await findUncredited(em(), { after: null, except: [], limit: 10 });
    assert.deepEqual(column(all, 'partnerId'), accounts);
    assert.deepEqual(all[0]?.depositIds, ids.get(accounts[0] ?? '')?.slice(0, 100));
    assert.deepEqual(all[1]?.depositIds, ids.get(accounts[1] ?? ''));
    const next = await findUncredited(em(), { after: live(accounts[0] ?? ''), except: [], limit: 1 });
    assert.deepEqual(column(next, 'partnerId'), [accounts[1]]);
    const rest = await findUncredited(em(), {
      after: null,
      except: accounts.slice(0, 2).map(live),
      limit: 10,
    });
    assert.deepEqual(column(rest, 'partnerId'), [accounts[2]]);
    for (const { depositIds } of all) await credit(...depositIds);
    const left = await findUncredited(em(), { after: null, except: [], limit: 10 });
    assert.deepEqual(left, [
      { partnerId: accounts[0], mode: 'live', depositIds: ids.get(accounts[0] ?? '')?.slice(100) },
    ]);
  });
});
