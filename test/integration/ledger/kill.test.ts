import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { createClients, WAYS } from '../../support/ledger/clients.ts';
import { assertLinearizable } from '../../support/ledger/linearize.ts';
import { Recorder } from '../../support/ledger/observe.ts';
import { openLedger, type TestLedger } from '../../support/ledger/open-ledger.ts';
import { draws, scriptOf } from '../../support/ledger/script.ts';
import { type OwnPostgres, startOwnPostgres } from '../../support/postgres.ts';

const CLIENTS = 8;
const ADMIN_SHUTDOWN = '57P01';
const CANNOT_CONNECT_NOW = '57P03';

/** Invariants 1 to 8 after something died in the middle of the work and its clients brought the same again. */
describe('the ledger', function () {
  this.timeout(120_000);
  let losses = 0;

  /** Whether an error says that the connection is gone, and with it the answer. */
  function isLost(error: unknown): boolean {
    const { code, message } = error as { code?: string; message: string };
    const lost =
      [ADMIN_SHUTDOWN, CANNOT_CONNECT_NOW, 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'].includes(code ?? '') ||
      /Connection terminated|connection timeout|not queryable/.test(message);
    if (lost) losses++;
    return lost;
  }

  /** Works through a new script while `disturb` does its worst, and returns once both are done. */
  async function workThrough(
    ledger: TestLedger,
    disturb: (recorder: Recorder, isDone: () => boolean) => Promise<void>,
  ): Promise<void> {
    losses = 0;
    const clients = createClients(ledger.orm, isLost);
    const recorder = new Recorder();
    const [drawn] = fc.sample(draws(600), 1);
    const { openings, postings } = scriptOf(drawn ?? []);
    await clients.work(openings, ['alone'], recorder);
    let done = false;
    const work = Promise.all(Array.from({ length: CLIENTS }, () => clients.work(postings, WAYS, recorder)));
    await Promise.all([
      work.finally(() => {
        done = true;
      }),
      disturb(recorder, () => done),
    ]);
    const after = await openLedger({ databaseUrl: ledger.databaseUrl });
    try {
      await assertLinearizable(after.owner, recorder.observations);
      assert.deepEqual(await checkLedger(after.em), []);
    } finally {
      await after.close();
    }
    assert.ok(losses > 0, 'nothing was lost, so nothing was shown');
  }

  it('loses and doubles nothing when its connections are killed', async () => {
    const ledger = await openLedger({ poolSize: CLIENTS });
    try {
      await workThrough(ledger, async (_recorder, isDone) => {
        while (!isDone()) {
          await ledger.owner.query(
            `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = 'ledger-test' AND state <> 'idle' ORDER BY random() LIMIT 1`,
          );
          await delay(40);
        }
      });
    } finally {
      await ledger.close();
    }
  });

  it('loses and doubles nothing when PostgreSQL is killed and started again', async () => {
    const postgres: OwnPostgres = await startOwnPostgres();
    const ledger = await openLedger({ poolSize: CLIENTS, databaseUrl: postgres.databaseUrl });
    // This connection ends with the first server; the check afterwards has one of its own.
    ledger.owner.on('error', () => {});
    try {
      await workThrough(ledger, async (recorder, isDone) => {
        for (const answered of [100, 200, 300]) {
          while (recorder.observations.length < answered && !isDone()) await delay(1);
          await postgres.crash();
        }
      });
    } finally {
      await ledger.orm.close();
      await postgres.close();
    }
  });
});
