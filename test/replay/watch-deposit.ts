import type { WorkflowHandle } from '@temporalio/client';
import { depositsTaskQueue } from '../../platform/config/task-queues.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { notifyDeposits } from '../../platform/db/notifications.ts';
import { query } from '../../platform/db/sql.ts';
import {
  resolveDepositSignal,
  WATCH_DEPOSIT as WATCH_DEPOSIT_TYPE,
  type WatchDepositInput,
  watchDepositWorkflowId,
} from '../../workflows/messages.ts';
import { pay } from '../support/deposits/payments.ts';
import { seedDeposit } from '../support/deposits/seed-deposits.ts';
import type { TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { detailsOf, skipTime, untilStarted } from '../support/workflows.ts';
import type { Recording } from './recording.ts';

const HOUR_MS = 3_600_000;

interface Deposit {
  id: string;
  stack: TestStack;
  workflow: WorkflowHandle;
  /** Pays this much USDT, and returns once it is found and judged and the workflow knows. */
  receive(usdt: string): Promise<void>;
  says(words: string): Promise<unknown>;
}

/** Records a deposit of 25.00 USDT whose workflow waits for its payment, until `then` changes that. */
function deposit(then: (deposit: Deposit) => Promise<void>): Recording {
  return async (stack) => {
    const partner = await stack.createPartner();
    const id = await seedDeposit(stack, partner.id);
    await notifyDeposits(stack.orm);
    const workflow = stack.client.workflow.getHandle(watchDepositWorkflowId(id));
    await untilStarted(workflow);
    const says = (words: string) =>
      until(`its details say "${words}"`, async () => (await detailsOf(workflow)).includes(words));
    await says('Waiting for one payment');
    const receive = async (usdt: string) => {
      await pay(stack.orm, id, { usdt });
      await notifyDeposits(stack.orm);
    };
    await then({ id, stack, workflow, receive, says });
    return workflow;
  };
}

const change = async ({ id, stack }: Deposit, change: string): Promise<void> => {
  await query(stack.orm.em.fork(), `UPDATE deposit SET ${change}, version = version + 1 WHERE id = $1`, [id]);
  await notifyDeposits(stack.orm);
};

export const WATCH_DEPOSIT: Record<string, Recording> = {
  confirmed: deposit(({ receive }) => receive('25')),
  expired: deposit(async (one) => {
    await skipTime(one.workflow, 9 * HOUR_MS);
    await one.says('No payment has been found, and the deadline');
    await change(one, "status = 'expired'");
  }),
  returned: deposit(async ({ workflow, receive, says }) => {
    await receive('10');
    await says('Waiting for an operator');
    await workflow.signal(resolveDepositSignal, { outcome: 'returned', reason: 'ticket 8' });
  }),
  deleted: ({ client, config }) => {
    const depositId = newId('dep');
    return client.workflow.start(WATCH_DEPOSIT_TYPE, {
      workflowId: watchDepositWorkflowId(depositId),
      taskQueue: depositsTaskQueue(config.taskQueuePrefix),
      args: [{ depositId }] satisfies [WatchDepositInput],
      staticSummary: 'a deposit that is deleted',
    });
  },
};
