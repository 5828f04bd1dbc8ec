import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { webhooksTaskQueue } from '../../../platform/config/task-queues.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import { createLogger } from '../../../platform/process/logger.ts';
import { EncryptionCodec } from '../../../platform/temporal/encryption-codec.ts';
import { TemporalPlugin } from '../../../platform/temporal/plugin.ts';
import { notifyDelivery } from '../../../webhooks/notify-delivery.ts';
import { type RunningWorker, startWorker } from '../../../worker/start-worker.ts';
import {
  deliverWebhookWorkflowId,
  issueCardWorkflowId,
  networkResult,
  resolveOperationSignal,
} from '../../../workflows/messages.ts';
import { createCard, settledCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { startTestStack, type TestPartner, type TestStack, testWorkflowBundle } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { detailsOf } from '../../support/workflows.ts';

const OLD = { id: 'old', secret: randomBytes(32) };
const NEW = { id: 'new', secret: randomBytes(32) };

describe('histories with CODEC_KEYS', () => {
  let stack: TestStack;
  let partner: TestPartner;
  const running = new Set<RunningWorker>();

  before(async () => {
    // No worker in the API: which keys a worker has is what these tests choose.
    const quick = { issuanceDeadlineMs: 2_000, cardCreationWaitMs: 200 };
    stack = await startTestStack({ ...quick, codecKeys: [OLD] }, { worker: false });
    partner = await fundedPartner(stack, 1_000_000);
  });
  afterEach(() => stopWorkers());
  after(() => stack.stop());

  async function workWith(codecKeys: TestStack['config']['codecKeys']): Promise<void> {
    const logger = createLogger('worker', 'silent');
    const workflowBundle = await testWorkflowBundle();
    running.add(await startWorker({ ...stack.config, codecKeys }, logger, { workflowBundle }));
  }

  async function stopWorkers(): Promise<void> {
    await Promise.all([...running].map((worker) => worker.stop()));
    running.clear();
  }

  async function issue(amount: number): Promise<{ cardId: string; workflow: WorkflowHandle }> {
    const { status, json } = await createCard(partner, { amount }, { mode: 'live' });
    assert.ok(status === 201 || status === 202, JSON.stringify(json));
    return { cardId: json.id, workflow: stack.client.workflow.getHandle(issueCardWorkflowId(json.id)) };
  }

  const untilItWaits = (workflow: WorkflowHandle) =>
    until('it waits for an operator', async () =>
      (await detailsOf(workflow)).includes('Waiting for an operator'),
    );
  /** As the server has it: the client decodes nothing of a history. */
  const historyOf = async (workflow: WorkflowHandle) => (await workflow.fetchHistory()).events ?? [];

  it('contain nothing readable except ids, types and search attributes, and clients can read them', async () => {
    await workWith([OLD]);
    // Activities, signals, details, a decision; and a workflow that a signal starts.
    const { cardId, workflow } = await issue(10_047);
    await untilItWaits(workflow);
    await workflow.signal(networkResult);
    await workflow.signal(resolveOperationSignal, { outcome: 'failed' });
    await workflow.result();
    assert.match((await (await workflow.describe()).staticSummary()) ?? '', new RegExp(cardId));
    const [eventId, endpointId] = [newId('evt'), newId('we')];
    const event = { eventId, endpointId, type: 'ping', partnerId: partner.id, mode: 'live' } as const;
    const taskQueue = webhooksTaskQueue(stack.config.taskQueuePrefix);
    const told = { status: 'retrying', attemptCount: 1, nextAttemptInMs: 1, error: 'http_500' } as const;
    await notifyDelivery(stack.client, { ...event, taskQueue }, told);
    const delivery = stack.client.workflow.getHandle(deliverWebhookWorkflowId(eventId, endpointId));
    await delivery.result();

    const kinds = new Set<string>();
    for (const handle of [workflow, delivery]) {
      for (const found of payloadsIn(await historyOf(handle))) {
        kinds.add(found.where);
        assert.equal(found.encoding, 'binary/encrypted', `${found.where} is readable`);
      }
    }
    for (const where of ['input', 'header', 'userMetadata', 'result', 'details']) {
      assert.ok(
        [...kinds].some((kind) => kind.includes(where)),
        `no ${where} among ${[...kinds]}`,
      );
    }
  });

  it('can be read and continued after a rotation, as long as the old key follows the new one', async () => {
    await workWith([OLD]);
    const { cardId, workflow } = await issue(10_047);
    await until('a worker has begun it', async () => (await historyOf(workflow)).length > 4);
    await stopWorkers();

    await workWith([NEW, OLD]);
    const { connectionOptions, namespace = 'default' } = stack.config.temporal;
    const plugins = [new TemporalPlugin({ codecKeys: [NEW, OLD], logger: null })];
    const connection = await Connection.connect({ ...connectionOptions, plugins });
    try {
      const rotated = new Client({ connection, namespace }).workflow.getHandle(workflow.workflowId);
      assert.match((await (await rotated.describe()).staticSummary()) ?? '', new RegExp(cardId));
      await untilItWaits(rotated);
      await rotated.signal(resolveOperationSignal, { outcome: 'failed' });
      await rotated.result();
    } finally {
      await connection.close();
    }
    assert.equal((await settledCard(partner, cardId)).status, 'failed');
    const keys = payloadsIn(await historyOf(workflow)).map(({ keyId }) => keyId);
    assert.deepEqual([...new Set(keys)].sort(), ['new', 'old']);

    const replay = async (codecKeys: TestStack['config']['codecKeys']) =>
      Worker.runReplayHistory(
        {
          workflowBundle: await testWorkflowBundle(),
          plugins: [new TemporalPlugin({ codecKeys, logger: null })],
        },
        await workflow.fetchHistory(),
      );
    await replay([NEW, OLD]);
    await assert.rejects(replay([NEW]));
  });

  it('wait for a worker with the key if one lacks it', async () => {
    await workWith([NEW]);
    const { cardId, workflow } = await issue(10_000);
    const failed = await until('its task fails', async () =>
      (await historyOf(workflow)).find((event) => event.workflowTaskFailedEventAttributes),
    );
    const { message, encodedAttributes } = failed.workflowTaskFailedEventAttributes?.failure ?? {};
    assert.equal(message, 'Encoded failure');
    // It says so under the key that it has.
    const why = new EncryptionCodec([NEW]).open(encodedAttributes ?? {});
    assert.match(Buffer.from(why.data ?? []).toString(), /CODEC_KEYS has no key .+old/);
    assert.equal((await workflow.describe()).status.name, 'RUNNING');
    await stopWorkers();
    await workWith([NEW, OLD]);
    assert.equal((await settledCard(partner, cardId)).status, 'active');
  });
});

interface Found {
  where: string;
  encoding: string;
  keyId: string;
}

/** Search attributes, and what the SDK notes itself of a local activity: its type, its id and times. */
const IN_CLEAR = /searchAttributes|markerRecordedEventAttributes\.details\.data/i;

/** Every payload below a value, with the names on the way to it. */
function payloadsIn(value: unknown, where = ''): Found[] {
  if (typeof value !== 'object' || value === null || IN_CLEAR.test(where)) return [];
  if (value instanceof Uint8Array) return [];
  const { metadata } = value as { metadata?: Record<string, Uint8Array> };
  if (metadata?.encoding instanceof Uint8Array) {
    const text = (name: string) => Buffer.from(metadata[name] ?? []).toString();
    return [{ where, encoding: text('encoding'), keyId: text('encryption-key-id') }];
  }
  return Object.entries(value).flatMap(([name, inner]) => payloadsIn(inner, `${where}.${name}`));
}
