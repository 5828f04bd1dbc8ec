import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTestStack } from '../../support/stack.ts';
import { assertLedgerClean } from '../../workflows/support/money.ts';
import type { Fault } from '../fault.ts';
import type { FaultyWorkerOptions } from '../faulty-worker.ts';
import { CASES, type CaseName } from './cases.ts';
import { ask, assertEnd, cardIdOf, prepareIssuance, resolveWhenOverdue } from './issuances.ts';
import { bundleFile, kill, scratchFolder, startProcess } from './processes.ts';

/**
 * Issues one card of each case; the worker is killed when all of them stand at the fault's place, and started again.
 * Every issuance has to end as if nothing had happened.
 */
export async function killWorkerAt(fault: Fault, cases: readonly CaseName[]): Promise<void> {
  const folder = scratchFolder();
  const stack = await startTestStack(
    // The first answer is waited for until the second worker gives it. 47 is past its deadline soon; for the others a
    // deadline changes nothing.
    { cardCreationWaitMs: 60_000, issuanceDeadlineMs: 5_000, logLevel: 'error' },
    { worker: false },
  );
  const options: FaultyWorkerOptions = {
    fault,
    cardCount: cases.length,
    markerFile: join(folder, 'killed'),
    codePath: await bundleFile(folder),
  };
  const startWorker = () =>
    startProcess(stack.config, folder, 'test/crash/faulty-worker.ts', { args: [JSON.stringify(options)] });
  let worker = await startWorker();
  try {
    const issuances = await Promise.all(cases.map((name) => prepareIssuance(stack, CASES[name])));
    const answers = Promise.all(issuances.map(ask));
    const resolved = Promise.all(issuances.map((issuance) => resolveWhenOverdue(stack, issuance)));
    const all = Promise.all([answers, resolved]);

    const tooLate = all.then(() => sleep(60_000, 'not at all', { ref: false }));
    const end = await Promise.race([worker.exited, tooLate]);
    assert.equal(end, 'signal SIGKILL', worker.lastLines().join('\n'));
    const stood: string[] = JSON.parse(readFileSync(options.markerFile, 'utf8'));
    const cardIds = await Promise.all(issuances.map((issuance) => cardIdOf(stack, issuance)));
    assert.deepEqual(stood.sort(), cardIds.sort());

    worker = await startWorker();
    const [firsts] = await all;
    await Promise.all(
      issuances.map((issuance, index) =>
        assertEnd(stack, issuance, firsts[index] as (typeof firsts)[number]),
      ),
    );
    await assertLedgerClean(stack);
  } catch (error) {
    const logged = [...stack.logLines, ...worker.lastLines()].join('\n');
    throw new Error(`it ended differently; the API and the last worker logged:\n${logged}`, { cause: error });
  } finally {
    await kill(worker);
    await stack.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
