import assert from 'node:assert/strict';
import { decideContradiction } from '../../../cards/late-answers.ts';
import { TRANSFER_DIRECTIONS, TRANSFERS, type TransferDirection } from '../../../domain/transfer.ts';
import { transferWorkflowId } from '../../../workflows/messages.ts';
import { createCard, eventTypes } from '../../support/cards.ts';
import { CUTS, cutCommits } from '../../support/crash/cut-commits.ts';
import { scratchFolder, startDyingWorker } from '../../support/crash/processes.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../../support/money.ts';
import { environmentOf, operateIn } from '../../support/operator/operate.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { readTransferRow, transfer } from '../../support/transfers.ts';
import { until } from '../../support/until.ts';

const CARD_CENTS = 20_000;
/** The network accepts it and never completes it. */
const AMOUNT_CENTS = 10_047;

const SPENT_CENTS = {
  topup: priceOf(CARD_CENTS) + priceOf(AMOUNT_CENTS, 'card_topup'),
  withdrawal: priceOf(CARD_CENTS) - AMOUNT_CENTS,
} as const;

/** An operation that failed by our record, and that the network has carried out. */
interface Contradicted {
  direction: TransferDirection;
  partner: TestPartner;
  cardId: string;
  id: string;
}

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

  const isBooked = async (id: string) => (await readTransferRow(stack, id))?.status === 'succeeded';

  /** As a worker notes it that has looked the operation up. */
  async function contradicted(direction: TransferDirection): Promise<Contradicted> {
    const partner = await fundedPartner(stack);
    const { json: card } = await createCard(partner, { amount: CARD_CENTS }, { mode: 'live' });
    const { json: made } = await transfer(
      direction,
      { partner, mode: 'live', cardId: card.id },
      AMOUNT_CENTS,
    );
    const id: string = made.id;
    await stack.client.workflow
      .getHandle(transferWorkflowId(direction, id))
      .signal('resolve', { outcome: 'failed' });
    await until('it has failed', async () => (await readTransferRow(stack, id))?.status === 'failed');
    await asOwner(
      stack,
      'UPDATE simulated_network.operation SET completes_at = clock_timestamp() WHERE token = $1',
      [id],
    );
    await asOwner(stack, `UPDATE late_answer SET said = 'yes', contradicts_since = now() WHERE id = $1`, [
      id,
    ]);
    return { direction, partner, cardId: card.id, id };
  }

  async function assertBookedOnce({ direction, partner, cardId }: Contradicted): Promise<void> {
    const types = await eventTypes(stack, cardId);
    assert.deepEqual(types, ['card.issued', `${direction}.failed`, `${direction}.succeeded`]);
    await assertBalance(stack, partner, 'live', { spentCents: SPENT_CENTS[direction], heldCents: 0 });
  }

  for (const direction of TRANSFER_DIRECTIONS) {
    for (const when of ['before commit', 'after commit'] as const) {
      it(`is a ${TRANSFERS[direction].noun} that is booked once if the worker that books it is killed -9 ${when.replace(' ', ' the ')}`, async () => {
        const late = await contradicted(direction);
        await stack.stopWorker();
        await decideContradiction(stack.operator, {
          kind: direction,
          id: late.id,
          outcome: 'booked',
          reason: 'a test',
        });
        const died = await startDyingWorker(stack.config, folder, 'INSERT INTO card_transfer (', when);
        await died();
        assert.equal(await isBooked(late.id), when === 'after commit');
        // The one that died had taken it for a minute.
        await asOwner(stack, 'UPDATE late_answer SET retry_after = now()');
        await stack.startWorker();
        await until('it is booked', () => isBooked(late.id));
        await assertBookedOnce(late);
      });
    }

    for (const [when, hasHappened] of CUTS) {
      it(`is a ${TRANSFERS[direction].noun} that is booked once, and "operator ${direction} book" can be run again, when its connection is cut ${when} the COMMIT`, async () => {
        const late = await contradicted(direction);
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
          await until('it is booked', () => isBooked(late.id));
          const again = await book();
          assert.equal(again.code, 1, again.err);
          assert.match(again.err, /there is nothing to book/);
        } else {
          assert.equal(await isBooked(late.id), false);
          const again = await book();
          assert.equal(again.code, 0, again.err);
        }
        await assertBookedOnce(late);
      });
    }
  }
});
