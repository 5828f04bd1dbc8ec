import assert from 'node:assert/strict';
import { kill, scratchFolder, startProcess } from '../../support/crash/processes.ts';
import { startWatchingProxy, type Watched } from '../../support/sockets.ts';
import { startTestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { seedEvents } from '../../support/webhooks/events.ts';
import { startReceiver } from '../../support/webhooks/receiver.ts';

/** What goes by between the worker and PostgreSQL right then. */
const TAKES_IT: Watched = { from: 'client', text: 'select "wanted", "event_types", "after_event_id"' };
const PUTS_IN_LINE: Watched = { from: 'client', text: 'INSERT INTO delivery AS d (event_id' };
const RECORDS_PROGRESS: Watched = { from: 'client', text: 'UPDATE webhook_replay SET status' };
const LEASES: Watched = { from: 'server', text: 'standard_headers' };

describe('a worker that is killed -9', () => {
  for (const [moment, watched] of [
    ['as it takes a replay', TAKES_IT],
    ["as it puts a replay's events in line", PUTS_IN_LINE],
    ['as it records how far a replay has got', RECORDS_PROGRESS],
    ['as it takes replayed events to send', LEASES],
  ] as const) {
    it(`${moment} is replaced by another, which sends every event of the replay`, async () => {
      const folder = scratchFolder();
      const stack = await startTestStack({}, { worker: false });
      const receiver = await startReceiver();
      const database = new URL(stack.config.databaseUrl);
      const proxy = await startWatchingProxy(database.host, watched, () =>
        process.kill(worker.pid, 'SIGKILL'),
      );
      database.host = proxy.address;
      const worker = await startProcess(
        { ...stack.config, databaseUrl: database.href },
        folder,
        'worker/main.ts',
      );
      try {
        const partner = await stack.createPartner();
        const earlier = await seedEvents(
          stack,
          partner,
          Array.from({ length: 100 }, (_, i) => ({ ageMs: i * 1_000, status: 'no_endpoint' })),
        );
        const endpoint = await partner.call('POST', '/webhook-endpoints', { body: { url: receiver.url } });
        const path = `/webhook-endpoints/${endpoint.json.id}`;
        const { status, json } = await partner.call('POST', `${path}/replay`, {
          body: { created_gte: new Date(Date.now() - 3_600_000).toISOString() },
        });
        assert.equal(status, 202);
        assert.equal(await worker.exited, 'signal SIGKILL');

        await stack.startWorker();
        const ended = await until('the replay is completed', async () => {
          const shown = (await partner.call('GET', `${path}/replays/${json.id}`)).json;
          return shown.status === 'completed' && shown;
        });
        assert.deepEqual([ended.matched, ended.sent], [100, 100]);
        assert.deepEqual([...new Set(receiver.received.map(({ id }) => id))].sort(), earlier.sort());
      } finally {
        await kill(worker);
        proxy.stop();
        await stack.stop();
        await receiver.stop();
      }
    });
  }
});
