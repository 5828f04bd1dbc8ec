import assert from 'node:assert/strict';
import { readBalance } from '../../../ledger/balances.ts';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { openCommands, type TestCommands } from '../../support/commands/open-commands.ts';
import { ENDS, type End, operateInProcess } from '../../support/crash/operator-process.ts';
import { depositEvents, pay, readDepositState } from '../../support/deposits/payments.ts';
import { seedDeposits } from '../../support/deposits/seed-deposits.ts';

const FUNDS = 1_000;

describe('operator deposit resolve', () => {
  let commands: TestCommands;
  before(async () => {
    commands = await openCommands();
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  const resolve = (id: string, version: number, end?: End) =>
    operateInProcess(
      { DATABASE_URL: commands.operatorUrl },
      ['deposit', 'resolve', id, '--credit', '--if-version', String(version), '--reason', 'in a test'],
      end,
    );

  for (const [end, hasHappened] of Object.entries(ENDS) as [End, boolean][]) {
    it(`credits all or nothing when its process is killed -9 ${end.replace(' 1', ' the COMMIT')}, and credits once when it is run again`, async () => {
      const { orm } = commands.context;
      const partnerId = await commands.createFundedPartner(FUNDS);
      const [id = ''] = await seedDeposits(commands.owner, { partnerId });
      await pay(orm, id, { usdt: '12.345' });
      const { version } = await readDepositState(orm, id);

      const ended = await resolve(id, version, end);
      assert.equal(ended.code, null, ended.err);
      const left = await readDepositState(orm, id);
      assert.deepEqual(
        [left.status, left.creditedCents],
        hasHappened ? ['confirmed', 1_234] : ['needs_review', 0],
      );

      if (hasHappened) await pay(orm, id, { usdt: '7' });
      const again = await resolve(id, version);
      assert.equal(again.code, hasHappened ? 1 : 0, again.err);
      if (hasHappened) assert.match(again.err, /You have already resolved .* this way; nothing was changed/);
      assert.equal((await readDepositState(orm, id)).creditedCents, 1_234);
      assert.equal((await readBalance(orm.em.fork(), partnerId, 'live')).totalCents, FUNDS + 1_234);
      const confirmed = (await depositEvents(orm, id)).filter(([type]) => type === 'deposit.confirmed');
      assert.equal(confirmed.length, 1);
    });
  }
});
