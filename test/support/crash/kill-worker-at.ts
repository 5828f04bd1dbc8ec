import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inParallel } from '../in-parallel.ts';
import { assertLedgerClean } from '../money.ts';
import { type Answer, startTestStack, type TestStack } from '../stack.ts';
import type { Fault } from './fault.ts';
import type { FaultyWorkerOptions } from './faulty-worker.ts';
import { ask, assertEnd, type Operation, readClaim, resolveWhenOverdue } from './operations.ts';
import { bundleFile, kill, scratchFolder, startProcess } from './processes.ts';

/** Half as many as the connections of the test's own pool. */
const AT_ONCE = 4;

/**
 * Asks for all these operations; the worker is killed when all of them stand at the fault's place, and another one started.
 * Every one has to end as if nothing had happened.
 */
export async function killWorkerAt(
  fault: Fault,
  operations: readonly ((stack: TestStack) => Promise<Operation>)[],
): Promise<void> {
  const folder = scratchFolder();
  const stack = await startTestStack(
    // The first answer is waited for until the second worker gives it. 47 is past its deadline soon; for the others a
    // deadline changes nothing.
    {
      cardCreationWaitMs: 240_000,
      issuanceDeadlineMs: 5_000,
      topUpDeadlineMs: 5_000,
      withdrawalDeadlineMs: 5_000,
      logLevel: 'error',
    },
    { worker: false },
  );
  const options: FaultyWorkerOptions = {
    fault,
    operationCount: operations.length,
    armedFile: join(folder, 'armed'),
    markerFile: join(folder, 'killed'),
    codePath: await bundleFile(folder),
  };
  const worker = await startProcess(stack.config, folder, 'test/support/crash/faulty-worker.ts', {
    args: [JSON.stringify(options)],
  });
  try {
    const prepared = await Promise.all(
      inParallel(
        AT_ONCE,
        operations.map((prepare) => () => prepare(stack)),
      ),
    );
    writeFileSync(options.armedFile, '');
    const answers = Promise.all(prepared.map(ask));
    const resolved = Promise.all(prepared.map((operation) => resolveWhenOverdue(stack, operation)));
    const all = Promise.all([answers, resolved]);

    const tooLate = all.then(() => sleep(180_000, 'not at all', { ref: false }));
    const end = await Promise.race([worker.exited, tooLate]);
    assert.equal(end, 'signal SIGKILL', worker.lastLines().join('\n'));
    const stood: string[] = JSON.parse(readFileSync(options.markerFile, 'utf8'));
    const claims = await Promise.all(prepared.map((operation) => readClaim(stack, operation)));
    assert.deepEqual(stood.sort(), claims.map(({ id }) => id).sort());

    await stack.startWorker();
    const [firsts] = await all;
    const asserted = prepared.map(
      (operation, index) => () => assertEnd(stack, operation, firsts[index] as Answer),
    );
    await Promise.all(inParallel(AT_ONCE, asserted));
    await assertLedgerClean(stack);
  } catch (error) {
    const logged = [...stack.logLines, ...worker.lastLines()].join('\n');
    throw new Error(`it ended differently; the stack and the killed worker logged:\n${logged}`, {
      cause: error,
    });
  } finally {
    await kill(worker);
    await stack.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
