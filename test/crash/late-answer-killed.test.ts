import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decideContradiction } from '../../commands/funding/book-topup.ts';
import { createCard, eventTypes } from '../support/cards.ts';
import type { DeadlyStatement } from '../support/crash/die-at-statement.ts';
import { kill, scratchFolder, startProcess } from '../support/crash/processes.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack } from '../support/stack.ts';
import { createTopUp, readTopUpRow } from '../support/top-ups.ts';
import { until } from '../support/until.ts';

const CARD_CENTS = 10_000;
/** The network accepts it and never completes it. */
const TOP_UP_CENTS = 10_047;

describe('a worker that books a top-up which the network has carried out after all', function () {
  this.timeout(240_000);

  for (const when of ['before commit', 'after commit'] as const) {
    it(`leaves it to another, which books it once, when it is killed -9 ${when.replace(' ', ' the ')}`, async () => {
      const folder = scratchFolder();
      const stack = await startTestStack({ topUpDeadlineMs: 1, logLevel: 'error' }, { hosted: false });
      try {
        const partner = await fundedPartner(stack);
        const { json: card } = await createCard(partner, { amount: CARD_CENTS }, { mode: 'live' });
        const { json: topUp } = await createTopUp(partner, 'live', card.id, TOP_UP_CENTS);
        await stack.client.workflow.getHandle(`top-up/${topUp.id}`).signal('resolve', { outcome: 'failed' });
        await until('it has failed', async () => (await readTopUpRow(stack, topUp.id))?.status === 'failed');
        await stack.stopWorker();
        await asOwner(
          stack,
          'UPDATE simulated_network.operation SET completes_at = clock_timestamp() WHERE token = $1',
          [topUp.id],
        );
        // As a worker notes it that has looked the top-up up.
        await asOwner(stack, `UPDATE late_answer SET said = 'yes', contradicts_since = now() WHERE id = $1`, [
          topUp.id,
        ]);
        const decision = { kind: 'topup', id: topUp.id, outcome: 'booked', reason: 'in a test' } as const;
        await decideContradiction(stack.operator, decision);

        const place: DeadlyStatement = {
          ...{ text: 'INSERT INTO topup AS t', when },
          ...{ armedFile: join(folder, 'armed'), markerFile: join(folder, 'dead') },
        };
        writeFileSync(place.armedFile, '');
        const worker = await startProcess(stack.config, folder, 'worker/main.ts', {
          execArgv: ['--import', './test/support/crash/die-at-statement.ts'],
          env: { DIE_AT_STATEMENT: JSON.stringify(place) },
        });
        try {
          assert.equal(await worker.exited, 'signal SIGKILL', worker.lastLines().join('\n'));
        } finally {
          await kill(worker);
        }
        const isBooked = async () => (await readTopUpRow(stack, topUp.id))?.status === 'succeeded';
        assert.equal(await isBooked(), when === 'after commit');
        // The one that died had taken it for a minute.
        await asOwner(stack, 'UPDATE late_answer SET look_up_after = now()');
        await stack.startWorker();
        await until('it is booked', isBooked);

        assert.deepEqual(await eventTypes(stack, card.id), [
          'card.issued',
          'topup.failed',
          'topup.succeeded',
        ]);
        const spentCents = priceOf(CARD_CENTS) + priceOf(TOP_UP_CENTS, 'card_topup');
        await assertBalance(stack, partner, 'live', { spentCents, heldCents: 0 });
        await assertLedgerClean(stack);
      } finally {
        await stack.stop();
        rmSync(folder, { recursive: true, force: true });
      }
    });
  }
});
