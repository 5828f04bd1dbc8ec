import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keepEvent } from '../../../issuers/inbox/kept-events.ts';
import { networkIdOf, networkTransaction } from '../../support/api/network-events.ts';
import { createCard } from '../../support/cards.ts';
import type { DeadlyStatement } from '../../support/crash/die-at-statement.ts';
import { bundleFile, kill, scratchFolder, startProcess } from '../../support/crash/processes.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;

describe('an event of the card network that was kept', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let folder: string;
  before(async () => {
    folder = scratchFolder();
    stack = await startTestStack();
    partner = await fundedPartner(stack, 100_000);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const statusOf = async (eventId: string) => {
    const [row] = await asOwner<{ status: string }>(
      stack,
      'SELECT status FROM network_event WHERE event_id = $1',
      [eventId],
    );
    return row?.status;
  };

  for (const [text, when, signal, isBooked] of [
    ['UPDATE network_event e', 'before', undefined, false],
    ['UPDATE network_event e', 'after', undefined, false],
    ['INSERT INTO card_authorization', 'before', undefined, false],
    ['INSERT INTO card_authorization', 'before commit', undefined, false],
    ['INSERT INTO card_authorization', 'after commit', undefined, true],
    ['update "network_event" set "status"', 'before', undefined, true],
    ['update "network_event" set "status"', 'after', undefined, true],
    ['INSERT INTO card_authorization', 'before commit', 'SIGSTOP', false],
    ['update "network_event" set "status"', 'before', 'SIGSTOP', true],
  ] as const) {
    it(`is booked once if the worker is ${signal ? 'frozen' : 'killed -9'} ${when} "${text}"`, async () => {
      await stack.stopWorker();
      const { json } = await createCard(partner, { amount: 1_000 }, live);
      const networkCardId = await networkIdOf(stack, json.id);
      const name = randomUUID();
      const place: DeadlyStatement = {
        text,
        when,
        ...(signal && { signal }),
        armedFile: join(folder, `armed-${name}`),
        markerFile: join(folder, `died-${name}`),
      };
      writeFileSync(place.armedFile, '');
      const worker = await startProcess(stack.config, folder, 'worker/main.ts', {
        execArgv: ['--import', './test/support/crash/die-at-statement.ts'],
        env: { DIE_AT_STATEMENT: JSON.stringify(place), WORKFLOW_BUNDLE: await bundleFile(folder) },
      });
      const clearing = networkTransaction(networkCardId, { type: 'clearing', networkAuthorizationId: null });
      const body = Buffer.from(JSON.stringify(clearing));
      await keepEvent(
        { orm: stack.orm, ring: stack.operator.ring },
        { network: 'simulated', eventId: name, body },
      );
      await until('the worker is stopped there', () => existsSync(place.markerFile));
      if (signal === undefined) {
        assert.equal(await worker.exited, 'signal SIGKILL', worker.lastLines().join('\n'));
        assert.equal((await transactions()).length, isBooked ? 1 : 0);
      }

      // As a minute later.
      await asOwner(stack, "UPDATE network_event SET retry_after = '-infinity' WHERE status = 'waiting'");
      await stack.startWorker();
      await until('it is done', async () => (await statusOf(name)) === 'done');
      assert.equal((await transactions()).length, 1);
      if (signal !== undefined) {
        process.kill(worker.pid, 'SIGCONT');
        // It ends what it was at.
        await worker.stop([{ signal: 'SIGTERM', graceMs: 30_000 }]);
      }
      await kill(worker);
      const { balance } = (await partner.call('GET', `/cards/${json.id}`, live)).json;
      assert.deepEqual([balance, (await transactions()).length], [900, 1]);

      async function transactions() {
        return (await partner.call('GET', `/cards/${json.id}/transactions`, live)).json.data;
      }
    });
  }
});
