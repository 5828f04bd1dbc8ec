import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { pino } from 'pino';
import {
  ensureSearchAttributes,
  registerNamespace,
  registerSearchAttributes,
} from '../../../platform/temporal/namespace.ts';
import { SEARCH_ATTRIBUTES } from '../../../platform/temporal/search-attributes.ts';
import { testServers } from '../../support/servers.ts';
import { startTemporalCloud } from '../../support/temporal-cloud.ts';
import { until } from '../../support/until.ts';

const ALL = SEARCH_ATTRIBUTES.map(({ name }) => name);

describe("Temporal's namespace", () => {
  let address: string;
  let connection: Connection;
  before(async () => {
    ({ address } = testServers().temporal);
    connection = await Connection.connect({ address });
  });
  after(() => connection.close());

  const remove = (namespace: string, ...searchAttributes: string[]) =>
    connection.operatorService.removeSearchAttributes({ namespace, searchAttributes });

  it('can be used at once with its search attributes, even if it is registered repeatedly or simultaneously', async () => {
    const namespace = `made-${randomUUID()}`;
    await Promise.all(Array.from({ length: 4 }, () => registerNamespace(connection, namespace)));
    assert.deepEqual(await registerNamespace(connection, namespace), { added: [], missing: [] });

    const client = new Client({ connection, namespace });
    await client.workflow.start('nobody-runs-it', {
      taskQueue: 'nobody-polls-it',
      workflowId: 'the-one',
      searchAttributes: { PartnerId: ['prt_1'], NeedsAttention: [true] },
    });
    const { workflowExecutionRetentionTtl } =
      (await connection.workflowService.describeNamespace({ namespace })).config ?? {};
    assert.equal(Number(workflowExecutionRetentionTtl?.seconds), 30 * 24 * 60 * 60);
    // The visibility store lags a little behind the start.
    const found = await until('it is found', async () => {
      const query = "PartnerId = 'prt_1' AND NeedsAttention = true";
      for await (const { workflowId } of client.workflow.list({ query })) return workflowId;
    });
    assert.equal(found, 'the-one');
  });

  it('gets what it lacks when processes start, even several at once', async () => {
    const namespace = `lacks-${randomUUID()}`;
    await registerNamespace(connection, namespace);
    await remove(namespace, 'CardId', 'NeedsAttention');
    const native = await NativeConnection.connect({ address });
    try {
      const both = [connection, native, native, connection] as const;
      const found = await Promise.all(both.map((one) => registerSearchAttributes(one, namespace)));
      for (const { missing } of found) assert.deepEqual(missing, []);
    } finally {
      await native.close();
    }
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
    assert.deepEqual(
      ALL.filter((name) => !(name in customAttributes)),
      [],
    );
  });

  it('is refused if a search attribute has another type', async () => {
    const namespace = `other-${randomUUID()}`;
    await registerNamespace(connection, namespace);
    await remove(namespace, 'CardId');
    await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: { CardId: 3 } });
    await assert.rejects(registerNamespace(connection, namespace), /search attribute CardId of another type/);
  });

  it('leads to advice, and to no failure, if the login may not add what it lacks', async () => {
    const namespace = `cloud-${randomUUID()}`;
    await registerNamespace(connection, namespace);
    await remove(namespace, 'CardId', 'NeedsAttention');
    const cloud = await startTemporalCloud(address);
    const lines: { msg: string }[] = [];
    const logger = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
    const asService = await Connection.connect({ address: cloud.address });
    const asWorker = await NativeConnection.connect({ address: cloud.address });
    try {
      const expected = { added: [], missing: ['CardId', 'NeedsAttention'] };
      assert.deepEqual(await registerNamespace(asService, namespace), expected);
      await ensureSearchAttributes(asWorker, namespace, logger);
      assert.equal(lines.length, 1);
      assert.match(
        lines[0]?.msg ?? '',
        new RegExp(
          `^The Temporal namespace ${namespace} lacks the search attributes CardId, NeedsAttention.*` +
            '--search-attribute "CardId=Keyword" --search-attribute "NeedsAttention=Bool".*' +
            '--name CardId --type Keyword --name NeedsAttention --type Bool',
        ),
      );

      await registerNamespace(connection, namespace);
      await ensureSearchAttributes(asWorker, namespace, logger);
      assert.equal(lines.length, 1);
      await assert.rejects(
        registerNamespace(asService, `none-${randomUUID()}`),
        /no Temporal namespace .* these credentials may not create it/,
      );
      assert.ok(cloud.refused.includes('ListSearchAttributes'));
    } finally {
      await asWorker.close();
      await asService.close();
      cloud.stop();
    }
  });
});
