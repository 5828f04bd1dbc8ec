import assert from 'node:assert/strict';
import { creditPayments } from '../../deposits/credit-payments.ts';
import { type DepositByHand, resolveDeposit } from '../../deposits/resolve.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { query } from '../../platform/db/sql.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { depositEvents, pay, readDepositState, recordPayment } from '../support/deposits/payments.ts';
import { seedDeposits } from '../support/deposits/seed-deposits.ts';

const FUNDS = 1_000;
const UNKNOWN = 'dep_01k0000000000000000000000a';

describe('the resolution of a deposit', () => {
  let commands: TestCommands;
  let partnerId: string;
  let depositId: string;
  before(async () => {
    commands = await openCommands();
  });
  beforeEach(async () => {
    partnerId = await commands.createFundedPartner(FUNDS);
    [depositId = ''] = await seedDeposits(commands.owner, { partnerId });
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  const receive = (usdt: string) => pay(commands.context.orm, depositId, { usdt });
  const state = () => readDepositState(commands.context.orm, depositId);
  const resolve = (decision: Partial<DepositByHand>) =>
    resolveDeposit(commands.operator, { depositId, outcome: 'credited', reason: 'ticket 7', ...decision });
  const credited = async () =>
    (await readBalance(commands.context.orm.em.fork(), partnerId, 'live')).totalCents - FUNDS;
  const audited = () =>
    query<{ actor: string; detail: object }>(
      commands.context.orm.em.fork(),
      `SELECT actor, detail FROM audit_entry WHERE action = 'deposit.resolve' AND subject = $1 ORDER BY id`,
      [depositId],
    );
  const eventTypes = async () => (await depositEvents(commands.context.orm, depositId)).map(([type]) => type);
  const done = (creditedCents: number) => ({ resolved: true, creditedCents, repeated: false });
  const refused = (because: string) => ({ resolved: false, because });

  it('credits another amount in whole cents, with an event and an audit row', async () => {
    await receive('12.345678');
    const { version } = await state();
    assert.deepEqual(await resolve({}), done(1_234));
    assert.deepEqual(await state(), {
      ...{ status: 'confirmed', version: version + 1, creditedCents: 1_234, payments: ['credited'] },
    });
    assert.equal(await credited(), 1_234);
    assert.deepEqual(await depositEvents(commands.context.orm, depositId), [
      ['deposit.needs_review', 'needs_review', 1_234],
      ['deposit.confirmed', 'confirmed', 1_234],
    ]);
    assert.deepEqual(await audited(), [
      {
        actor: 'test',
        detail: {
          ...{ partnerId, mode: 'live', outcome: 'credited', reason: 'ticket 7', version },
          ...{ payments: 1, creditedCents: 1_234, amountUsdt: '12.345678' },
        },
      },
    ]);
  });

  it('adds up parts, with the remainder of those credited before', async () => {
    await receive('10.006');
    await receive('0.003');
    assert.deepEqual(await resolve({}), done(1_000));
    await receive('0.001');
    assert.deepEqual(await resolve({}), done(1));
    assert.equal(await credited(), 1_001);
    assert.deepEqual((await state()).payments, ['credited', 'credited', 'credited']);
    // The second part changed nothing about its waiting for a review.
    assert.deepEqual(await eventTypes(), [
      ...['deposit.needs_review', 'deposit.confirmed', 'deposit.needs_review', 'deposit.confirmed'],
    ]);
  });

  it('does not credit less than a cent, which can be recorded as returned', async () => {
    await receive('0.009999');
    assert.deepEqual(await resolve({}), refused('below_a_cent'));
    assert.equal((await state()).status, 'needs_review');
    assert.deepEqual(await audited(), []);
    assert.deepEqual(await resolve({ outcome: 'returned' }), done(0));
    assert.equal((await state()).status, 'returned');
    assert.deepEqual(await eventTypes(), ['deposit.needs_review']);
  });

  it('does not credit what was returned when a later payment is credited', async () => {
    await receive('10');
    assert.deepEqual(await resolve({ outcome: 'returned' }), done(0));
    await receive('3');
    assert.deepEqual(await resolve({}), done(300));
    assert.deepEqual(await state(), {
      ...(await state()),
      ...{ status: 'confirmed', creditedCents: 300, payments: ['returned', 'credited'] },
    });
    assert.equal(await credited(), 300);
  });

  it('confirms a paid deposit again, whatever is decided on its second payment', async () => {
    await receive('25');
    await receive('25');
    assert.equal((await state()).status, 'needs_review');
    assert.deepEqual(await resolve({ outcome: 'returned' }), done(0));
    assert.equal((await state()).status, 'confirmed');
    await receive('25');
    assert.deepEqual(await resolve({}), done(2_500));
    assert.equal((await state()).status, 'confirmed');
    assert.equal(await credited(), 5_000);
    assert.deepEqual(await eventTypes(), [
      ...['deposit.confirmed', 'deposit.needs_review', 'deposit.needs_review', 'deposit.confirmed'],
    ]);
  });

  it('refuses a deposit that is resolved or was never paid', async () => {
    assert.deepEqual(await resolve({}), refused('nothing_in_review'));
    await receive('25');
    assert.deepEqual(await resolve({}), refused('nothing_in_review'));
    await receive('1');
    await resolve({});
    const before = await state();
    for (const outcome of ['credited', 'returned'] as const)
      assert.deepEqual(await resolve({ outcome }), refused('nothing_in_review'));
    assert.deepEqual(await state(), before);
    assert.equal(await resolve({ depositId: UNKNOWN }), null);
  });

  it('does not decide on a payment that the operator has not seen', async () => {
    await receive('10');
    const { version } = await state();
    await receive('26');
    assert.deepEqual(await resolve({ version }), refused('changed_meanwhile'));
    assert.equal(await credited(), 0);
    assert.deepEqual(await resolve({ version: version + 1 }), done(3_600));
  });

  it('takes several payments as sent back only together with the version that the operator saw', async () => {
    await receive('10');
    await receive('26');
    assert.deepEqual(await resolve({ outcome: 'returned' }), refused('version_needed'));
    const { version } = await state();
    assert.deepEqual(await resolve({ outcome: 'returned', version }), done(0));
    assert.deepEqual((await state()).payments, ['returned', 'returned']);
  });

  it('ignores a payment that is not judged yet', async () => {
    await receive('10');
    await recordPayment(commands.context.orm, depositId, { usdt: '25' });
    assert.deepEqual(await resolve({}), done(1_000));
    assert.deepEqual((await state()).payments, ['credited', 'found']);
    await creditPayments(commands.context.orm, [depositId]);
    assert.deepEqual([(await state()).status, await credited()], ['confirmed', 3_500]);
  });

  it('happens once, however often it is requested with the same version', async () => {
    await receive('10');
    const { version } = await state();
    assert.deepEqual(await resolve({ version }), done(1_000));
    await receive('7');
    const before = await state();
    assert.deepEqual(await resolve({ version }), { resolved: true, creditedCents: 1_000, repeated: true });
    assert.deepEqual(await resolve({ version, outcome: 'returned' }), refused('changed_meanwhile'));
    assert.deepEqual(await resolve({ version, reason: 'another' }), refused('changed_meanwhile'));
    assert.deepEqual(await state(), before);
    assert.equal(await credited(), 1_000);
  });

  it('happens once if several operators request it at once', async () => {
    await receive('10');
    const { version } = await state();
    const decisions = [...Array(8).keys()].map((i) => ({
      version: i % 3 === 0 ? undefined : version,
      outcome: i % 2 === 0 ? ('credited' as const) : ('returned' as const),
      reason: `operator ${i}`,
    }));
    const verdicts = await Promise.all(decisions.map((decision) => resolve(decision)));
    assert.equal(verdicts.filter((verdict) => verdict?.resolved).length, 1);
    const { creditedCents, status } = await state();
    assert.equal(await credited(), creditedCents);
    assert.equal(status, creditedCents === 0 ? 'returned' : 'confirmed');
    assert.equal((await audited()).length, 1);
  });

  it('loses no payment that is judged at the same time', async () => {
    for (let round = 0; round < 5; round++) {
      await receive('1');
      await recordPayment(commands.context.orm, depositId, { usdt: '2' });
      await Promise.all([resolve({}), creditPayments(commands.context.orm, [depositId])]);
      await creditPayments(commands.context.orm, [depositId]);
      await resolve({});
      const { status, creditedCents } = await state();
      assert.deepEqual([status, creditedCents], ['confirmed', 300 * (round + 1)]);
      assert.equal(await credited(), creditedCents);
    }
  });

  it('refuses a credit that would take the balance past the largest integer', async () => {
    await receive('90071992547400');
    assert.deepEqual(await resolve({}), refused('past_the_largest_balance'));
    await receive('5');
    assert.deepEqual(await resolve({}), refused('past_the_largest_balance'));
    assert.deepEqual(await audited(), []);
    assert.equal(await credited(), 0);
    const { version } = await state();
    assert.deepEqual(await resolve({ outcome: 'returned', version }), done(0));

    [depositId = ''] = await seedDeposits(commands.owner, { partnerId });
    await receive('90071992547409.91');
    // By itself it is the largest amount; with what is in the balance it is too much.
    assert.deepEqual(await resolve({}), refused('past_the_largest_balance'));
    await receive('1');
    assert.deepEqual(await resolve({}), refused('past_the_largest_balance'));
  });
});
