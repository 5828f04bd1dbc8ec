import assert from 'node:assert/strict';
import { decideContradiction } from '../../../cards/late-answers.ts';
import { CUTS, cutCommits } from '../../support/crash/cut-commits.ts';
import { scratchFolder, startDyingWorker } from '../../support/crash/processes.ts';
import { assertLedgerClean } from '../../support/money.ts';
import {
  assertMoney,
  completeAtNetwork,
  NEVER_FINISHES,
  rowOf,
  type Stuck,
  stuck,
  TOP_UP,
  typesAbout,
  WITHDRAWAL,
} from '../../support/operation-kinds.ts';
import { environmentOf, operateIn } from '../../support/operator/operate.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

describe('what the network has carried out after all', () => {
  let stack: TestStack;
  const folder = scratchFolder();
  before(async () => {
    stack = await startTestStack(
      { topUpDeadlineMs: 1, withdrawalDeadlineMs: 1, logLevel: 'error' },
      { hosted: false },
    );
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  const isBooked = async (late: Stuck) => (await rowOf(late))?.status === 'succeeded';

  /** It failed by our record, and the network has carried it out, as a worker notes it that has looked it up. */
  async function contradicted(kind: typeof TOP_UP): Promise<Stuck> {
    const late = await stuck(stack, kind);
    await late.workflow.signal('resolve', { outcome: 'failed' });
    await until('it has failed', async () => (await rowOf(late))?.status === 'failed');
    await completeAtNetwork(stack, late.id);
    await asOwner(stack, `UPDATE late_answer SET said = 'yes', contradicts_since = now() WHERE id = $1`, [
      late.id,
    ]);
    return late;
  }

  async function assertBookedOnce(late: Stuck): Promise<void> {
    const { events } = late.kind;
    assert.deepEqual(await typesAbout(late), [events.failed, events.succeeded]);
    await assertMoney(late, 'succeeded', NEVER_FINISHES);
  }

  for (const [kind, direction] of [
    [TOP_UP, 'topup'],
    [WITHDRAWAL, 'withdrawal'],
  ] as const) {
    for (const when of ['before commit', 'after commit'] as const) {
      it(`is ${kind.name} that is booked once if the worker that books it is killed -9 ${when.replace(' ', ' the ')}`, async () => {
        const late = await contradicted(kind);
        await stack.stopWorker();
        await decideContradiction(stack.operator, {
          kind: direction,
          id: late.id,
          outcome: 'booked',
          reason: 'a test',
        });
        const died = await startDyingWorker(stack.config, folder, 'INSERT INTO card_transfer (', when);
        await died();
        assert.equal(await isBooked(late), when === 'after commit');
        // The one that died had taken it for a minute.
        await asOwner(stack, 'UPDATE late_answer SET retry_after = now()');
        await stack.startWorker();
        await until('it is booked', () => isBooked(late));
        await assertBookedOnce(late);
      });
    }

    for (const [when, hasHappened] of CUTS) {
      it(`is ${kind.name} that is booked once, and "operator ${direction} book" can be run again, when its connection is cut ${when} the COMMIT`, async () => {
        const late = await contradicted(kind);
        const book = () =>
          operateIn(environmentOf(stack.config))(direction, 'book', late.id, '--reason', 'in a test');
        await stack.stopWorker();
        const cuts = cutCommits();
        cuts.arm(when, late.id);
        const ended = await book();
        cuts.undo();
        assert.equal(ended.code, 1, ended.err);
        await stack.startWorker();
        if (hasHappened) {
          await until('it is booked', () => isBooked(late));
          const again = await book();
          assert.equal(again.code, 1, again.err);
          assert.match(again.err, /there is nothing to book/);
        } else {
          assert.equal(await isBooked(late), false);
          const again = await book();
          assert.equal(again.code, 0, again.err);
        }
        await assertBookedOnce(late);
      });
    }
  }
});
