import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { inParallel } from '../in-parallel.ts';
import { assertLedgerClean } from '../money.ts';
import { type Answer, startTestStack, type TestStack } from '../stack.ts';
import { until } from '../until.ts';
import { arm, describePlace, type Fault, type FaultOptions, standingPartners } from './fault.ts';
import { assertHandedOver, startFaultyApi, startFaultyWorker, withLogs } from './faulty-processes.ts';
import {
  ask,
  askAt,
  assertEnd,
  type Operation,
  readClaim,
  resolveWhenOverdue,
  untilAnswered,
} from './operations.ts';
import { kill, scratchFolder } from './processes.ts';

export interface Standing {
  fault: Fault;
  prepare(stack: TestStack): Promise<Operation>;
}

/** How many operations one process is killed in. Those that stand at a commit keep one of its connections each. */
const MAX_STANDING = 40;
const MAX_AT_COMMITS = 11;
/** So many prepare, ask or check at once: more would only compete for the processors. */
const AT_ONCE = 4;

/**
 * Shares operations out to as few processes as can be killed in all of them. Those that keep a connection come last, when the
 * others need none any more.
 */
export function batchesOf(standings: readonly Standing[]): Standing[][] {
  const atCommits = standings.filter(({ fault }) => fault.when.endsWith('commit'));
  const others = standings.filter(({ fault }) => !fault.when.endsWith('commit'));
  const count = Math.max(
    Math.ceil(atCommits.length / MAX_AT_COMMITS),
    Math.ceil(standings.length / MAX_STANDING),
  );
  return Array.from({ length: count }, (_, batch) =>
    [others, atCommits].flatMap((some) => some.filter((_, index) => index % count === batch)),
  );
}

/**
 * Asks for all these operations. The worker is killed when each of them stands at its place, and another one is started. Every
 * operation has to end as if nothing had happened.
 */
export async function killWorkerIn(standings: readonly Standing[]): Promise<void> {
  const deadlineMs = 5_000;
  const stack = await startTestStack(
    {
      // The first answer is waited for until the second worker gives it. 47 is past its deadline soon; for the others a
      // deadline changes nothing.
      cardCreationWaitMs: 240_000,
      issuanceDeadlineMs: deadlineMs,
      topUpDeadlineMs: deadlineMs,
      withdrawalDeadlineMs: deadlineMs,
      logLevel: 'error',
    },
    { worker: false },
  );
  const { worker, options } = await startFaultyWorker(stack, scratchFolder());
  try {
    const operations = await forEach(standings, ({ prepare }) => prepare(stack));
    armEach(options, standings, operations);
    const answers = operations.map((operation) => untilAnswered(() => ask(operation)));
    const resolved = operations.map((operation) => resolveWhenOverdue(stack, operation));
    const all = Promise.all([...answers, ...resolved]);
    const end = await Promise.race([worker.exited, all.then(() => 'none: all operations ended before')]);
    assert.equal(end, 'signal SIGKILL', worker.lastLines().join('\n'));
    await assertAllStood(stack, options, operations);
    await stack.startWorker();
    await all;
    await forEach(operations, async (operation, index) => {
      await assertEnd(stack, operation, (await answers[index]) as Answer);
    });
    await assertLedgerClean(stack);
  } catch (error) {
    throw withLogs(error, stack, worker);
  } finally {
    await kill(worker);
    await stack.stop();
  }
}

/**
 * The same with an API process that runs the first tasks of the workflows that it starts. The worker and the API that complete
 * them start when it is gone, so they can't be first.
 */
export async function killApiIn(standings: readonly Standing[]): Promise<void> {
  const stack = await startTestStack({ cardCreationWaitMs: 240_000, logLevel: 'error' }, { worker: false });
  const { api, options, origin, untilHosting } = await startFaultyApi(stack, scratchFolder());
  try {
    await stack.startWorker();
    const operations = await forEach(standings, ({ prepare }) => prepare(stack));
    await untilHosting();
    await stack.stopWorker();
    armEach(options, standings, operations);
    let isGone = false;
    void api.exited.then(() => {
      isGone = true;
    });
    // Only a start that is answered within a second has the first task, so few are under way at once.
    const asked = await forEach(operations, async (operation, index) => {
      const answer = untilAnswered(() => askAt(origin, operation)).catch(() => null);
      const place = describePlace((standings[index] as Standing).fault);
      const stands = () => isGone || standingPartners(options).includes(operation.partner.id);
      await until(`the operation ${operation.path} stands ${place}`, stands);
      return { answer };
    });
    assert.equal(await api.exited, 'signal SIGKILL', api.lastLines().join('\n'));
    await assertAllStood(stack, options, operations);
    await stack.startWorker();
    await forEach(operations, async (operation, index) => {
      // What was answered before the process died stays answered; the others get no response.
      const first = await asked[index]?.answer;
      const again = await untilAnswered(() => ask(operation));
      if (first) assert.equal(first.text, again.text);
      await assertEnd(stack, operation, again);
      const claim = await readClaim(stack, operation);
      await assertHandedOver(stack.client.workflow.getHandle(operation.workflowIdOf(claim)));
    });
    await assertLedgerClean(stack);
  } catch (error) {
    throw withLogs(error, stack, api);
  } finally {
    await kill(api);
    await stack.stop();
  }
}

function forEach<T, R>(items: readonly T[], work: (item: T, index: number) => Promise<R>): Promise<R[]> {
  const tasks = items.map((item, index) => () => work(item, index));
  return Promise.all(inParallel(AT_ONCE, tasks));
}

function armEach(
  options: FaultOptions,
  standings: readonly Standing[],
  operations: readonly Operation[],
): void {
  const partnerIdOf = (index: number) => operations[index]?.partner.id ?? null;
  arm(
    options,
    standings.map(({ fault }, index) => ({ fault, partnerId: partnerIdOf(index) })),
  );
}

async function assertAllStood(
  stack: TestStack,
  { markerFile }: FaultOptions,
  operations: readonly Operation[],
): Promise<void> {
  const stood: string[] = JSON.parse(readFileSync(markerFile, 'utf8'));
  const claims = await forEach(operations, (operation) => readClaim(stack, operation));
  assert.deepEqual(stood.sort(), claims.map(({ id }) => id).sort());
}
