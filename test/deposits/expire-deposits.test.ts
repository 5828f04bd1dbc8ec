import assert from 'node:assert/strict';
import { beginScan } from '../../deposits/chain-scan.ts';
import { expireDeposits, findUnpaid } from '../../deposits/expire.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { depositEvents, recordPayment } from '../support/deposits/payments.ts';
import { hoursFromNow, readDeposits, seedDeposits } from '../support/deposits/seed-deposits.ts';
import { countStatements } from '../support/statements.ts';

const ANY = { after: null, except: [], limit: 10 };

describe('an unpaid deposit', () => {
  let commands: TestCommands;
  let partnerId: string;
  beforeEach(async () => {
    commands = await openCommands();
    partnerId = await commands.createFundedPartner(100);
  });
  afterEach(() => commands.close());

  const em = () => commands.context.orm.em.fork();
  const scannedUpTo = (time: Date) =>
    beginScan(commands.context.orm, 'private', { number: 100, hash: null, time });
  const expire = (depositIds: string[]) =>
    expireDeposits(commands.context.orm, { partnerId, mode: 'live', depositIds });
  const statusesOf = async (ids: string[]) => {
    const deposits = await readDeposits(commands.owner);
    return ids.map((id) => deposits.get(id)?.status);
  };

  it('expires with an event when the chain has passed its time, unless something has arrived for it', async () => {
    const [empty = '', paid = ''] = await seedDeposits(commands.owner, {
      ...{ partnerId, count: 2, expiresAt: hoursFromNow(-1) },
    });
    const [later = ''] = await seedDeposits(commands.owner, { partnerId });
    await recordPayment(commands.context.orm, paid);
    await scannedUpTo(new Date());
    assert.deepEqual(await findUnpaid(em(), ANY), [{ partnerId, mode: 'live', depositIds: [empty] }]);
    assert.equal(await expire([empty, paid, later]), 1);
    assert.deepEqual(await statusesOf([empty, paid, later]), [
      ...['expired', 'awaiting_payment', 'awaiting_payment'],
    ]);
    assert.equal((await readDeposits(commands.owner)).get(empty)?.version, 2);
    assert.deepEqual(await depositEvents(commands.context.orm, empty), [['deposit.expired', 'expired', 0]]);
    assert.deepEqual(await findUnpaid(em(), ANY), []);
  });

  it('is still awaited at the very end of its time, and as long as the chain was not read that far', async () => {
    const expiresAt = hoursFromNow(-1);
    const ids = await seedDeposits(commands.owner, { partnerId, expiresAt });
    assert.deepEqual(await findUnpaid(em(), ANY), []);
    await scannedUpTo(expiresAt);
    assert.deepEqual(await findUnpaid(em(), ANY), []);
    assert.equal(await expire(ids), 0);
    assert.deepEqual(await statusesOf(ids), ['awaiting_payment']);
  });

  it('expires once, with one event, however many processes try', async () => {
    const ids = await seedDeposits(commands.owner, { partnerId, count: 20, expiresAt: hoursFromNow(-1) });
    await scannedUpTo(new Date());
    const counts = await Promise.all([1, 2, 3, 4].map(() => expire(ids)));
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      20,
    );
    for (const id of ids) assert.equal((await depositEvents(commands.context.orm, id)).length, 1);
  });

  it('is left to the next turn if another transaction holds it', async () => {
    const ids = await seedDeposits(commands.owner, { partnerId, count: 2, expiresAt: hoursFromNow(-1) });
    await scannedUpTo(new Date());
    {
      await using holder = await commands.connect();
      await holder.query('BEGIN');
      await holder.query('SELECT FROM deposit WHERE id = $1 FOR NO KEY UPDATE', [ids[0]]);
      assert.equal(await expire(ids), 1);
      await holder.query('ROLLBACK');
    }
    assert.deepEqual(await statusesOf(ids), ['awaiting_payment', 'expired']);
    assert.equal(await expire(ids), 1);
  });

  it('is found beside the hundreds of an account that is being served, with no more statements for 100 than for one', async () => {
    const many = await seedDeposits(commands.owner, {
      ...{ partnerId, count: 600, expiresAt: hoursFromNow(-2) },
    });
    const other = await commands.createFundedPartner(100);
    const depositIds = await seedDeposits(commands.owner, { partnerId: other, expiresAt: hoursFromNow(-1) });
    await scannedUpTo(new Date());
    const [first] = await findUnpaid(em(), ANY);
    assert.equal(first?.partnerId, partnerId);
    assert.equal(first?.depositIds.length, 100);
    const except = [{ partnerId, mode: 'live' } as const];
    assert.deepEqual(await findUnpaid(em(), { ...ANY, except }), [
      { partnerId: other, mode: 'live', depositIds },
    ]);
    const statements = countStatements(commands.operatorUrl);
    try {
      assert.equal(await expire(many.slice(0, 100)), 100);
    } finally {
      statements.stop();
    }
    assert.equal(statements.texts.length, 4, statements.texts.join('\n'));
  });
});
