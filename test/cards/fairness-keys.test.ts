import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import type { WorkflowOperation } from '../../domain/claim-operation.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { resolveOperation, startClaimed } from '../../requests/claimed-workflow.ts';
import { notifyDelivery } from '../../webhooks/notify-delivery.ts';
import { testServers } from '../support/servers.ts';
import { until } from '../support/until.ts';

/** On a task queue without a worker, so that what is started waits. */
describe('the service', () => {
  const taskQueue = `fairness-${randomUUID()}`;
  let client: Client;
  before(async () => {
    const { address, namespace } = testServers().temporal;
    client = new Client({ connection: await Connection.connect({ address }), namespace });
  });
  after(() => client.connection.close());

  const claimOf = (partnerId: string) => ({
    ...{ partnerId, mode: 'live' as const, taskQueue, deadlineMs: 0 },
    ...{ claimId: newId('claim'), cardId: newId('card'), transferId: newId('topup') },
  });
  const eventOf = (partnerId: string) => ({
    ...{ eventId: newId('evt'), type: 'ping' as const, partnerId, mode: 'live' as const },
    endpointId: newId('we'),
    taskQueue,
  });
  const tell = (status: 'retrying' | 'given_up') => (partnerId: string) =>
    notifyDelivery(client, eventOf(partnerId), {
      ...{ status, attemptCount: 1, nextAttemptInMs: 1_000, error: 'http_500' },
    });
  const begin = (operation: WorkflowOperation) => (partnerId: string) =>
    startClaimed(client, { ...claimOf(partnerId), operation });
  const decide = (operation: 'create_card' | 'top_up_card') => (partnerId: string) =>
    resolveOperation(client, claimOf(partnerId), { operation, decision: { outcome: 'failed' } });

  for (const [what, startFor] of Object.entries<(partnerId: string) => Promise<unknown>>({
    'an issuance': begin('create_card'),
    'a top-up': begin('top_up_card'),
    'a freeze': begin('freeze_card'),
    'an unfreeze': begin('unfreeze_card'),
    'a block': begin('block_card'),
    'the retries of an event': tell('retrying'),
    'an event that was given up before it had a workflow': tell('given_up'),
    'a decision on an issuance': decide('create_card'),
    'a decision on a top-up': decide('top_up_card'),
  })) {
    it(`starts the workflow of ${what} with the partner as its fairness key`, async () => {
      const partnerId = newId('prt');
      await startFor(partnerId);
      const query = `PartnerId = '${partnerId}'`;
      const started = await until('it can be found', async () => {
        for await (const { workflowId } of client.workflow.list({ query })) return workflowId;
      });
      const { priority } = await client.workflow.getHandle(started).describe();
      assert.equal(priority?.fairnessKey, partnerId);
    });
  }

  it("runs another partner's task before most of what one partner has queued", async () => {
    const [flooding, quiet] = [newId('prt'), newId('prt')];
    const queue = `${taskQueue}-turns`;
    const startOn = (partnerId: string) =>
      startClaimed(client, { ...claimOf(partnerId), operation: 'create_card', taskQueue: queue });
    await Promise.all(Array.from({ length: 20 }, () => startOn(flooding)));
    await startOn(quiet);
    let handedOut = 0;
    for (let found = false; !found; ) {
      const { workflowExecution } = await client.withDeadline(Date.now() + 30_000, () =>
        client.workflowService.pollWorkflowTaskQueue({
          namespace: client.options.namespace,
          taskQueue: { name: queue },
          identity: 'test',
        }),
      );
      handedOut += 1;
      const { workflowId } = workflowExecution ?? {};
      const { priority } = await client.workflow.getHandle(workflowId ?? '').describe();
      found = priority?.fairnessKey === quiet;
    }
    assert.ok(handedOut <= 5, `it was number ${handedOut} of 21`);
  });
});
