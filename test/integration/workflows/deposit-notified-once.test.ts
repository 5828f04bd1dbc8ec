import assert from 'node:assert/strict';
import { notifyDeposits } from '../../../db/notifications.ts';
import { watchDepositWorkflowId } from '../../../workflows/messages.ts';
import { type DepositStack, openAddress, startDepositStack } from '../../support/deposits/deposit-stack.ts';
import { asOwner } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';

describe("a deposit's workflow that has not looked yet", () => {
  let deposits: DepositStack;
  let look = () => {};
  before(async () => {
    deposits = await startDepositStack({}, { worker: false });
  });
  after(async () => {
    look();
    await deposits.stop();
  });

  it('is notified once, however often its deposit changes', async () => {
    const { stack } = deposits;
    const mayLook = new Promise<void>((resolve) => {
      look = resolve;
    });
    await stack.startWorker({
      around: {
        depositActivities: (activities) => ({
          ...activities,
          readDeposit: async (...asked) => {
            await mayLook;
            return activities.readDeposit(...asked);
          },
        }),
      },
    });
    const partner = await stack.createPartner();
    const workflowOf = ({ id }: { id: string }) =>
      stack.client.workflow.getHandle(watchDepositWorkflowId(id));
    const untilStarted = (deposit: { id: string }) =>
      until('its workflow is started', () =>
        workflowOf(deposit)
          .describe()
          .then(() => true)
          .catch(() => false),
      );
    const watched = await openAddress(partner, 2_500);
    await untilStarted(watched);
    for (let change = 0; change < 3; change++) {
      await asOwner(stack, 'UPDATE deposit SET version = version + 1, changed_at = now() WHERE id = $1', [
        watched.id,
      ]);
      await notifyDeposits(stack.orm);
      // It is notified after the deposit before it, of the same account.
      await untilStarted(await openAddress(partner, 2_500));
    }
    const { events } = await workflowOf(watched).fetchHistory();
    const signals = (events ?? []).filter((event) => event.workflowExecutionSignaledEventAttributes);
    assert.equal(signals.length, 1);
    look();
    await until('it has seen the last change', async () => {
      const [row] = await asOwner<{ seen: boolean }>(
        stack,
        'SELECT told_version = version AS seen FROM deposit WHERE id = $1',
        [watched.id],
      );
      return row?.seen;
    });
  });
});
