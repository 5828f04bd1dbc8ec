import assert from 'node:assert/strict';
import fc from 'fast-check';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { createClients, WAYS } from '../../support/ledger/clients.ts';
import { assertLinearizable } from '../../support/ledger/linearize.ts';
import { Recorder } from '../../support/ledger/observe.ts';
import { openLedger } from '../../support/ledger/open-ledger.ts';
import { draws, scriptOf } from '../../support/ledger/script.ts';
import { startOwnPostgres } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';

const CLIENTS = 8;
/** At how many answers PostgreSQL is killed. */
const KILLS_AT = [100, 200, 300];
const LOST_CODES = ['57P01', '57P03', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'];
const LOST_MESSAGES = /Connection terminated|connection timeout|not queryable/;

describe('the ledger', () => {
  it('loses and doubles nothing when PostgreSQL is killed while clients work, who bring the same again', async () => {
    const postgres = await startOwnPostgres();
    const ledger = await openLedger({ poolSize: CLIENTS, databaseUrl: postgres.databaseUrl });
    // This connection ends with the first server; the check afterwards has one of its own.
    ledger.owner.on('error', () => {});
    let losses = 0;
    let restarted = Promise.resolve();
    const clients = createClients(ledger.orm, async (error) => {
      const { code = '', message } = error as { code?: string; message: string };
      if (!LOST_CODES.includes(code) && !LOST_MESSAGES.test(message)) return false;
      losses += 1;
      await restarted;
      return true;
    });
    try {
      const recorder = new Recorder();
      const [drawn = []] = fc.sample(draws(600), 1);
      const { openings, postings } = scriptOf(drawn);
      await clients.work(openings, ['alone'], recorder);
      const work = Promise.all(Array.from({ length: CLIENTS }, () => clients.work(postings, WAYS, recorder)));
      for (const answers of KILLS_AT) {
        await until(`${answers} are answered`, () => recorder.observations.length >= answers);
        restarted = postgres.crash();
        await restarted;
      }
      await work;
      assert.ok(losses > 0, 'nothing was lost, so nothing was shown');
      const after = await openLedger({ databaseUrl: ledger.databaseUrl });
      try {
        await assertLinearizable(after.owner, recorder.observations);
        assert.deepEqual(await checkLedger(after.em), []);
      } finally {
        await after.close();
      }
    } finally {
      await ledger.orm.close();
      await postgres.close();
    }
  });
});
