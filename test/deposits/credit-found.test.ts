import assert from 'node:assert/strict';
import { pino } from 'pino';
import { beginScan } from '../../deposits/chain-scan.ts';
import { type Serving, startCrediting } from '../../deposits/jobs.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { takeNextBlock } from '../support/deposits/next-block.ts';
import { paymentFor, readDeposits, seedDeposits } from '../support/deposits/seed-deposits.ts';
import { until } from '../support/until.ts';

describe('the crediting of found payments', () => {
  let commands: TestCommands;
  let crediting: Serving | undefined;
  let logged: string[];
  beforeEach(async () => {
    commands = await openCommands();
    logged = [];
    await beginScan(commands.context.orm, 'private', { number: 100, hash: null, time: null });
  });
  afterEach(async () => {
    await crediting?.stop();
    crediting = undefined;
    await commands.close();
  });

  function start(): void {
    const logger = pino({ level: 'info' }, { write: (line: string) => logged.push(line) });
    crediting = startCrediting({ orm: commands.context.orm, logger, served: () => {} });
  }

  /** Deposits of a new account, each paid. */
  async function paid(count: number): Promise<{ partnerId: string; ids: string[] }> {
    const partnerId = await commands.createFundedPartner(100);
    const ids = await seedDeposits(commands.owner, { partnerId, count });
    const payments = ids.map((id) => paymentFor(id, partnerId));
    await takeNextBlock(commands.context.orm, payments);
    crediting?.wake();
    return { partnerId, ids };
  }

  const confirmed = async (ids: string[]) => {
    const deposits = await readDeposits(commands.owner);
    return ids.filter((id) => deposits.get(id)?.status === 'confirmed').length;
  };
  const untilConfirmed = (ids: string[], count = ids.length) =>
    until(`${count} are confirmed`, async () => (await confirmed(ids)) === count);

  it('delays no account because the balances of ten others are locked', async () => {
    const locked = [];
    for (let count = 0; count < 10; count++) locked.push(await paid(1));
    {
      await using holder = await commands.connect();
      await holder.query('BEGIN');
      await holder.query('SELECT FROM ledger.account WHERE id = ANY ($1) FOR UPDATE', [
        locked.map(({ partnerId }) => `prepaid/live/${partnerId}`),
      ]);
      start();
      await until('one has waited in vain', async () => logged.some((line) => line.includes('55P03')));
      const { ids } = await paid(5);
      await untilConfirmed(ids);
      assert.equal(await confirmed(locked.flatMap((account) => account.ids)), 0);
      await holder.query('ROLLBACK');
    }
    await untilConfirmed(locked.flatMap((account) => account.ids));
  });

  it("credits an account's other deposits if one cannot be written, and that one once it can", async () => {
    const { ids } = await paid(5);
    await commands.owner.query(`
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.id = '${ids[1]}' THEN RAISE EXCEPTION 'no'; END IF; RETURN NEW; END $$;
      CREATE TRIGGER refuse BEFORE UPDATE ON deposit FOR EACH ROW EXECUTE FUNCTION refuse();
      GRANT EXECUTE ON FUNCTION refuse TO PUBLIC`);
    start();
    await untilConfirmed(ids, 4);
    const other = await paid(3);
    await untilConfirmed(other.ids);
    assert.equal(await confirmed(ids), 4);
    assert.ok(logged.some((line) => line.includes("could not credit an account's payments")));
    await commands.owner.query('DROP TRIGGER refuse ON deposit');
    await untilConfirmed(ids);
  });

  it('is shared by several workers, and takes several transactions for one account', async () => {
    start();
    const second = startCrediting({
      orm: commands.context.orm,
      logger: pino({ level: 'silent' }),
      served: () => {},
    });
    try {
      const [many, few] = [await paid(250), await paid(2)];
      second.wake();
      await untilConfirmed(few.ids);
      await untilConfirmed(many.ids);
      const { rows } = await commands.owner.query(
        `SELECT count(*)::int AS events FROM event WHERE type = 'deposit.confirmed'`,
      );
      assert.deepEqual(rows, [{ events: 252 }]);
    } finally {
      await second.stop();
    }
  });
});
