import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { registerNamespace } from '../../../../dev/temporal/namespace.ts';
import { testTemporal } from '../../../support/temporal.ts';

describe('registerNamespace', () => {
  let connection: Connection;
  before(async () => {
    connection = await Connection.connect({ address: (await testTemporal()).address });
  });
  after(() => connection.close());

  it('makes a namespace whose search attributes can be used at once, however often and often at once it is called', async () => {
    const namespace = `made-${randomUUID()}`;
    await Promise.all([registerNamespace(connection, namespace), registerNamespace(connection, namespace)]);
    await registerNamespace(connection, namespace);

    const client = new Client({ connection, namespace });
    await client.workflow.start('nobody-runs-it', {
      taskQueue: 'nobody-polls-it',
      workflowId: 'the-one',
      searchAttributes: { PartnerId: ['prt_1'], NeedsAttention: [true] },
    });
    const { workflowExecutionRetentionTtl } =
      (await connection.workflowService.describeNamespace({ namespace })).config ?? {};
    assert.equal(Number(workflowExecutionRetentionTtl?.seconds), 30 * 24 * 60 * 60);
    const found = await eventuallyFound(client);
    assert.deepEqual(found, ['the-one']);
  });

  it('says so when a search attribute is there with another type', async () => {
    const namespace = `other-${randomUUID()}`;
    await registerNamespace(connection, namespace);
    await connection.operatorService.removeSearchAttributes({ namespace, searchAttributes: ['CardId'] });
    await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: { CardId: 3 } });
    await assert.rejects(registerNamespace(connection, namespace), /search attribute CardId of another type/);
  });
});

/** The visibility store lags a little behind the start. */
async function eventuallyFound(client: Client): Promise<string[]> {
  for (;;) {
    const ids: string[] = [];
    for await (const { workflowId } of client.workflow.list({
      query: "PartnerId = 'prt_1' AND NeedsAttention = true",
    })) {
      ids.push(workflowId);
    }
    if (ids.length > 0) return ids;
  }
}
