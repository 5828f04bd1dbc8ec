import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { WorkflowExecutionInfo, WorkflowHandle } from '@temporalio/client';
import { tsToMs } from '@temporalio/common/lib/time.js';
import { freePort } from '../../../dev/free-port.ts';
import type { Child } from '../../../dev/process/child.ts';
import type { TestStack } from '../stack.ts';
import { until } from '../until.ts';
import type { FaultOptions } from './fault.ts';
import type { FaultyApiOptions } from './faulty-api-process.ts';
import type { FaultyWorkerOptions } from './faulty-worker.ts';
import { bundleFile, startProcess } from './processes.ts';

/** temporal.api.enums.v1.TimeoutType */
const START_TO_CLOSE = 1;

function filesIn(folder: string) {
  const name = randomUUID();
  return { armedFile: join(folder, `armed-${name}`), markerFile: join(folder, `standing-${name}`) };
}

/** A worker that is killed, or frozen, where it is told to by {@link arm}. */
export async function startFaultyWorker(
  { config }: TestStack,
  folder: string,
  signal?: FaultOptions['signal'],
): Promise<{ worker: Child; options: FaultOptions }> {
  const codePath = await bundleFile(folder);
  const options: FaultyWorkerOptions = { ...filesIn(folder), ...(signal && { signal }), codePath };
  const args = [JSON.stringify(options)];
  return {
    worker: await startProcess(config, folder, 'test/support/crash/faulty-worker.ts', { args }),
    options,
  };
}

/** The same with an API process that runs the first tasks of the workflows that it starts. */
export async function startFaultyApi(stack: TestStack, folder: string, signal?: FaultOptions['signal']) {
  const hostingFile = join(folder, 'hosting');
  const codePath = await bundleFile(folder);
  const options: FaultyApiOptions = { ...filesIn(folder), ...(signal && { signal }), hostingFile, codePath };
  const config = { ...stack.config, port: await freePort() };
  const args = [JSON.stringify(options)];
  const api = await startProcess(config, folder, 'test/support/crash/faulty-api-process.ts', { args });
  const untilHosting = () => until('the API hosts a worker', async () => existsSync(hostingFile));
  return { api, options, origin: `http://${config.host}:${config.port}`, untilHosting };
}

/** The error, with what the stack and these processes have logged. */
export function withLogs(error: unknown, stack: TestStack, ...children: Child[]): Error {
  const logged = [stack.logLines, ...children.map((child) => child.lastLines())].flat().join('\n');
  return new Error(`it ended differently; the processes logged:\n${logged}`, { cause: error });
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
