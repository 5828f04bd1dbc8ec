import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { WorkflowExecutionInfo, WorkflowHandle } from '@temporalio/client';
import { tsToMs } from '@temporalio/common/lib/time.js';
import { freePort } from '../../../dev/free-port.ts';
import type { Child } from '../../../dev/process/child.ts';
import { assertLedgerClean } from '../money.ts';
import { startTestStack, type TestStack } from '../stack.ts';
import { until } from '../until.ts';
import { arm, type Fault } from './fault.ts';
import type { FaultyApiOptions } from './faulty-api-process.ts';
import type { Operation } from './operations.ts';
import { bundleFile, kill, scratchFolder, startProcess } from './processes.ts';

/** temporal.api.enums.v1.TimeoutType */
const START_TO_CLOSE = 1;

interface FaultyApi {
  stack: TestStack;
  operation: Operation;
  api: Child;
  origin: string;
  arm(): void;
  /** Waits until the operation has reached the fault's place. */
  untilStanding(): Promise<unknown>;
}

/**
 * An API process that freezes when this operation stands at the fault's place of its first task; beside it a worker, and an API
 * without one.
 */
export async function withFreezingApi(
  fault: Fault,
  prepare: (stack: TestStack) => Promise<Operation>,
  test: (faulty: FaultyApi) => Promise<void>,
): Promise<void> {
  const folder = scratchFolder();
  const stack = await startTestStack({ cardCreationWaitMs: 240_000, logLevel: 'error' }, { worker: false });
  const options: FaultyApiOptions = {
    signal: 'SIGSTOP',
    armedFile: join(folder, 'armed'),
    markerFile: join(folder, 'standing'),
    hostingFile: join(folder, 'hosting'),
    codePath: await bundleFile(folder),
  };
  const config = { ...stack.config, port: await freePort() };
  const [api] = await Promise.all([
    startProcess(config, folder, 'test/support/crash/faulty-api-process.ts', {
      args: [JSON.stringify(options)],
    }),
    stack.startWorker(),
  ]);
  try {
    const operation = await prepare(stack);
    await until('the API hosts a worker', async () => existsSync(options.hostingFile));
    await test({
      ...{ stack, operation, api, origin: `http://${config.host}:${config.port}` },
      arm: () => arm(options, [{ fault, partnerId: operation.partner.id }]),
      untilStanding: () => until('it stands there', async () => existsSync(options.markerFile)),
    });
    await assertLedgerClean(stack);
  } catch (error) {
    const logged = [...stack.logLines, ...api.lastLines()].join('\n');
    throw new Error(`it ended differently; the stack and the API logged:\n${logged}`, { cause: error });
  } finally {
    await kill(api);
    await stack.stop();
  }
}

/** Temporal waits for a task that its worker has lost for this long. */
const TASK_TIMEOUT_MS = 5_000;

/**
 * Fails unless the workflow's first task was its API's, and another worker had the next one with no other wait than for the
 * end of that task's time. How long the worker then took says how busy the machine is.
 */
export async function assertHandedOver(workflow: WorkflowHandle): Promise<void> {
  const { client, workflowId } = workflow;
  // Whoever brings a status change again just as it ends has it run once more.
  let first: Pick<WorkflowExecutionInfo, 'runId' | 'startTime'> = await workflow.describe();
  for await (const run of client.list({ query: `WorkflowId = '${workflowId}'` }))
    if (run.startTime < first.startTime) first = run;
  const { events } = await client.getHandle(workflowId, first.runId).fetchHistory();
  const started = events?.[0]?.workflowExecutionStartedEventAttributes;
  assert.equal(tsToMs(started?.workflowTaskTimeout), TASK_TIMEOUT_MS);
  const tasks = (events ?? []).flatMap(
    ({ workflowTaskStartedEventAttributes: task, workflowTaskTimedOutEventAttributes: lost }) => {
      if (task) return [task.identity?.startsWith('api-') ? 'of the API' : 'of another worker'];
      return lost ? [`over: ${lost.timeoutType === START_TO_CLOSE ? 'its time' : lost.timeoutType}`] : [];
    },
  );
  // A local activity that takes long is given another task of the same worker.
  const turns = tasks.filter((task, index) => task !== tasks[index - 1]);
  const handedOver = turns.slice(0, turns.indexOf('of another worker') + 1);
  const expected = ['of the API', ...(handedOver.length > 2 ? ['over: its time'] : []), 'of another worker'];
  const kinds = (events ?? []).map(({ eventType, eventTime }) => `${tsToMs(eventTime)} ${eventType}`);
  assert.deepEqual(handedOver, expected, `${workflowId}: ${handedOver}; ${kinds.join(', ')}`);
}
