import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readBalance } from '../../../ledger/balances.ts';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { openCommands, type TestCommands } from '../../support/commands/open-commands.ts';
import { depositEvents, pay, readDepositState } from '../../support/deposits/payments.ts';
import { seedDeposits } from '../../support/deposits/seed-deposits.ts';

const FUNDS = 1_000;
/** When the process is killed -9 at its only COMMIT, and whether that has taken place. */
const ENDS = { 'before 1': false, 'after 1': true };

describe('operator deposit resolve', () => {
  let commands: TestCommands;
  before(async () => {
    commands = await openCommands();
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  /** @returns the exit code of its process, or null if that was killed, and what it wrote */
  const resolve = (id: string, version: number, end?: string) =>
    new Promise<{ code: unknown; err: string }>((done) => {
      const killed = end === undefined ? [] : ['--import', './test/support/crash/die-at-commit.ts'];
      const why = ['--if-version', String(version), '--reason', 'in a test'];
      const env = { PATH: process.env.PATH, DATABASE_URL: commands.operatorUrl, DIE_AT_COMMIT: end };
      execFile(
        process.execPath,
        [...killed, 'operator/main.ts', 'deposit', 'resolve', id, '--credit', ...why],
        { env },
        (error, _, err) => done({ code: error === null ? 0 : error.code, err }),
      );
    });

  for (const [end, hasHappened] of Object.entries(ENDS)) {
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
