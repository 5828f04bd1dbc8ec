import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { pino } from 'pino';
import { type RunningApi, startApi } from '../../api/server.ts';
import { freePort } from '../../dev/free-port.ts';
import type { Config } from '../../platform/config/service.ts';
import { cardsTaskQueue } from '../../platform/config/task-queues.ts';
import { notifyDeposits } from '../../platform/db/notifications.ts';
import { startEagerWorker } from '../../platform/temporal/eager-worker.ts';
import { type RunningWorker, startWorker } from '../../worker/start-worker.ts';
import { issueCardWorkflowId, networkResult, watchDepositWorkflowId } from '../../workflows/messages.ts';
import { createCard, eventTypes, networkCardCount, settledCard } from '../support/cards.ts';
import { pay } from '../support/deposits/payments.ts';
import { seedDeposit } from '../support/deposits/seed-deposits.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../support/money.ts';
import { bundleNextRelease } from '../support/next-release/bundle.ts';
import { asOwner } from '../support/postgres.ts';
import { partnerAt, startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { readRow, setUrl, workflowIdOf, writeEvents } from '../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../support/webhooks/receiver.ts';
import { skipTime, untilStarted } from '../support/workflows.ts';

describe('an upgrade of workers with versions', () => {
  const deploymentName = `cards-${randomUUID()}`;
  const version = (buildId: string) => ({ deploymentName, buildId });
  let stack: TestStack;
  let partner: TestPartner;
  let receiver: Receiver;
  let nextBundle: WorkflowBundleWithSourceMap;
  let nextWorker: RunningWorker | undefined;
  let nextApi: RunningApi | undefined;
  let issuedCents = 0;
  let depositedCents = 0;
  let nextPartner: TestPartner;

  before(async () => {
    stack = await startTestStack(
      // However long an upgrade takes, no attempt is due before its time is skipped.
      { workerVersion: version('1'), cardCreationWaitMs: 3_000, webhookDelaysMs: [HOUR_MS] },
      { hosted: true },
    );
    partner = await fundedPartner(stack);
    receiver = await startReceiver();
    await setUrl(stack, partner, receiver.url);
    nextBundle = await bundleNextRelease();
  });
  after(async () => {
    await nextApi?.stop();
    await nextWorker?.stop();
    await stack.stop();
    await receiver.stop();
  });

  it('begins with the first version, which makes itself current', async () => {
    await until('it is current', async () => (await currentBuild().catch(() => null)) === '1');
    await until('the API hosts a worker', async () => (await issueEagerly(partner)) === '1');
  });

  it('loses nothing and does nothing twice', async () => {
    const before = await waitingWork(partner);
    for (const one of Object.values(before)) assert.equal(await buildOf(one.workflow), '1', one.what);

    await startNext();
    // The new workers poll, but nothing is theirs yet.
    assert.equal(await currentBuild(), '1');
    await makeCurrent('2');
    const after = await waitingWork(nextPartner);

    await end(partner, before);
    await end(nextPartner, after);
    await assertMoney();
    assert.deepEqual(await endOf(before.card), { build: '1', isPatched: false });
    assert.deepEqual(await endOf(before.event), { build: '2', isPatched: true });
    assert.deepEqual(await endOf(before.deposit), { build: '2', isPatched: true });
    for (const one of [after.card, after.event, after.deposit])
      assert.equal((await endOf(one)).build, '2', one.what);
  });

  it('can be rolled back the same way', async () => {
    const before = await waitingWork(nextPartner);
    assert.equal(await buildOf(before.card.workflow), '2');
    await makeCurrent('1');
    const after = await waitingWork(partner);

    await end(nextPartner, before);
    await end(partner, after);
    await assertMoney();
    assert.deepEqual(await endOf(before.card), { build: '2', isPatched: false });
    assert.deepEqual(await endOf(before.event), { build: '1', isPatched: false });
    assert.deepEqual(await endOf(before.deposit), { build: '1', isPatched: false });
    for (const one of [after.card, after.event, after.deposit])
      assert.equal((await endOf(one)).build, '1', one.what);
  });

  it('allows finished workflows to be reset to their beginning, and does nothing twice', async () => {
    const work = await waitingWork(partner);
    await end(partner, work);
    for (const { workflow } of Object.values(work)) {
      const { runId } = await workflow.describe();
      const { events } = await workflow.fetchHistory();
      const firstTask = events?.find((event) => event.workflowTaskCompletedEventAttributes);
      await stack.client.workflowService.resetWorkflowExecution({
        namespace: stack.client.options.namespace,
        workflowExecution: { workflowId: workflow.workflowId, runId },
        ...{
          workflowTaskFinishEventId: firstTask?.eventId ?? undefined,
          requestId: randomUUID(),
          reason: 'a test',
        },
      });
      await stack.client.workflow.getHandle(workflow.workflowId).result();
    }
    await assertHappenedOnce(partner, work);
    await assertMoney();
  });

  it('shows the workers of all versions', async () => {
    const response = await fetch(`http://127.0.0.1:${stack.config.port}/readyz`);
    const { workers } = (await response.json()) as { workers: Record<string, number> };
    for (const [queue, count] of Object.entries(workers)) assert.ok(count >= 2, `${queue}: ${count}`);
  });

  async function startNext(): Promise<void> {
    const config: Config = { ...stack.config, port: await freePort(), workerVersion: version('2') };
    const logger = pino({ level: 'silent' });
    nextWorker = await startWorker(config, logger, { workflowBundle: nextBundle });
    const taskQueue = cardsTaskQueue(config.taskQueuePrefix);
    await until('Temporal knows the new version', async () => (await knownBuilds()).includes('2'));
    nextApi = await startApi(config, logger, {
      hostWorker: (activities) =>
        startEagerWorker({ config, taskQueue, activities, workflowBundle: nextBundle, logger }),
    });
    nextPartner = partnerAt(partner, nextApi.url);
    await until('its API hosts a worker', async () => (await issueEagerly(nextPartner)) === '2');
  }

  const describeDeployment = async () => {
    const { workflowService, options } = stack.client;
    const { workerDeploymentInfo } = await workflowService.describeWorkerDeployment({
      ...{ namespace: options.namespace, deploymentName },
    });
    return workerDeploymentInfo;
  };
  const currentBuild = async () =>
    (await describeDeployment())?.routingConfig?.currentDeploymentVersion?.buildId;
  const knownBuilds = async () =>
    (await describeDeployment())?.versionSummaries?.map(
      ({ deploymentVersion }) => deploymentVersion?.buildId,
    ) ?? [];

  /** As `temporal worker deployment set-current-version` does. */
  async function makeCurrent(buildId: string): Promise<void> {
    const { workflowService, options } = stack.client;
    await until('the version takes over', () =>
      workflowService
        .setWorkerDeploymentCurrentVersion({ namespace: options.namespace, deploymentName, buildId })
        // Not all of its queues have been polled yet.
        .catch((error: { code?: number }) => {
          if (error.code !== GRPC_FAILED_PRECONDITION) throw error;
        }),
    );
  }

  /** @returns the build of a live card that is issued at once, if the API's own worker ran its first task */
  async function issueEagerly(by: TestPartner): Promise<string | null | undefined> {
    const { json } = await createCard(by, { amount: 1_000 }, { mode: 'live' });
    const workflow = stack.client.workflow.getHandle(issueCardWorkflowId(json.id));
    await workflow.result();
    issuedCents += priceOf(1_000);
    const { events } = await workflow.fetchHistory();
    const isEager = events?.some((event) =>
      event.workflowTaskStartedEventAttributes?.identity?.startsWith('api-'),
    );
    return isEager ? buildOf(workflow) : undefined;
  }

  /** Work that waits: a card for the network, an event for its next attempt, a deposit for its payment. */
  async function waitingWork(by: TestPartner): Promise<Record<'card' | 'event' | 'deposit', Waiting>> {
    receiver.behave(answer(500));
    const { status, json } = await createCard(by, { amount: NEVER_FINISHES_CENTS }, { mode: 'live' });
    assert.equal(status, 202);
    const [eventId = ''] = await writeEvents(stack, by, 1);
    await until('its workflow waits for the next attempt', async () => {
      const row = await readRow(stack, eventId);
      return row.status === 'retrying' && row.workflow === 'told';
    });
    const depositId = await seedDeposit(stack, by.id);
    await notifyDeposits(stack.orm);
    const handle = (id: string) => stack.client.workflow.getHandle(id);
    const work = {
      card: { what: 'card', id: json.id, workflow: handle(issueCardWorkflowId(json.id)) },
      event: { what: 'event', id: eventId, workflow: handle(await workflowIdOf(stack, eventId)) },
      deposit: { what: 'deposit', id: depositId, workflow: handle(watchDepositWorkflowId(depositId)) },
    };
    for (const { what, workflow } of Object.values(work)) {
      await untilStarted(workflow);
      await until(`the ${what}'s first task is done`, async () => (await buildOf(workflow)) !== undefined);
    }
    return work;
  }

  /** Lets everything arrive that it waits for, and asserts that it happened once. */
  async function end(by: TestPartner, { card, event, deposit }: Awaited<ReturnType<typeof waitingWork>>) {
    receiver.behave(answer(200));
    await letNetworkFinish(stack, card.id);
    await card.workflow.signal(networkResult);
    await skipTime(event.workflow, HOUR_MS + 1_000);
    await pay(stack.orm, deposit.id, { usdt: '25' });
    await notifyDeposits(stack.orm);
    for (const { workflow } of [card, event, deposit]) await workflow.result();

    issuedCents += priceOf(NEVER_FINISHES_CENTS);
    depositedCents += 2_500;
    await assertHappenedOnce(by, { card, event, deposit });
  }

  async function assertHappenedOnce(
    by: TestPartner,
    { card, event }: Awaited<ReturnType<typeof waitingWork>>,
  ) {
    assert.equal((await settledCard(by, card.id)).status, 'active');
    assert.deepEqual(await eventTypes(stack, card.id), ['card.issued']);
    assert.equal(await networkCardCount(stack, card.id), 1);
    assert.equal(receiver.attempts(event.id).length, 2);
    assert.equal((await readRow(stack, event.id)).status, 'delivered');
  }

  async function assertMoney(): Promise<void> {
    await assertBalance(stack, partner, 'live', { spentCents: issuedCents - depositedCents, heldCents: 0 });
    await assertLedgerClean(stack);
  }
});

describe('a worker without a version whose code does not fit running workflows', () => {
  it('makes them wait until it is rolled back, and loses nothing', async () => {
    const stack = await startTestStack({ cardCreationWaitMs: 3_000 }, { hosted: false });
    const partner = await fundedPartner(stack);
    const { json } = await createCard(partner, { amount: NEVER_FINISHES_CENTS }, { mode: 'live' });
    const workflow = stack.client.workflow.getHandle(issueCardWorkflowId(json.id));
    await stack.stopWorker();

    await stack.startWorker({ workflowBundle: await bundleNextRelease() });
    await letNetworkFinish(stack, json.id);
    await workflow.signal(networkResult);
    await until('the new code is refused', async () => {
      const { events } = await workflow.fetchHistory();
      return events?.some(
        (event) => event.workflowTaskFailedEventAttributes?.cause === NON_DETERMINISTIC_ERROR,
      );
    });
    const heldCents = priceOf(NEVER_FINISHES_CENTS);
    await assertBalance(stack, partner, 'live', { spentCents: 0, heldCents });

    await stack.stopWorker();
    await stack.startWorker();
    await workflow.result();
    assert.deepEqual(await eventTypes(stack, json.id), ['card.issued']);
    assert.equal(await networkCardCount(stack, json.id), 1);
    await assertBalance(stack, partner, 'live', { spentCents: heldCents, heldCents: 0 });
    await assertLedgerClean(stack);
    await stack.stop();
  });
});

const HOUR_MS = 3_600_000;
const GRPC_FAILED_PRECONDITION = 9;
const NON_DETERMINISTIC_ERROR = 24;
/** The simulated network accepts it, and never says more. */
const NEVER_FINISHES_CENTS = 10_047;

interface Waiting {
  what: string;
  id: string;
  workflow: WorkflowHandle;
}

/** What the simulated network never said of a card, it says from now on. */
const letNetworkFinish = (stack: TestStack, cardId: string) =>
  asOwner(stack, 'UPDATE simulated_network.operation SET completes_at = clock_timestamp() WHERE token = $1', [
    cardId,
  ]);

async function buildOf(workflow: WorkflowHandle): Promise<string | undefined> {
  const { raw } = await workflow.describe();
  return raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId ?? undefined;
}

/** On which build a workflow has ended, and whether by the way that only the next release has. */
async function endOf({ workflow }: Waiting): Promise<{ build: string | undefined; isPatched: boolean }> {
  const { events } = await workflow.fetchHistory();
  const isPatched = events?.some(
    ({ markerRecordedEventAttributes: marker }) => marker?.markerName === 'core_patch',
  );
  return { build: await buildOf(workflow), isPatched: isPatched ?? false };
}
