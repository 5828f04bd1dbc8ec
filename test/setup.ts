import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Context, Runner } from 'mocha';
import './support/built-statements.ts';

const { TEST_DURATIONS, TEST_SERVERS } = process.env;

async function prepareTemporal(): Promise<void> {
  const { pino } = await import('pino');
  const { installRuntime } = await import('../temporal/install-runtime.ts');
  installRuntime(pino({ level: 'error' }, process.stderr));
}

/** For `npx mocha FILE …`: runs before any test's time limit starts, since the Temporal server may have to be built. */
export async function mochaGlobalSetup(this: Runner): Promise<void> {
  if (process.env.TEST_RUN !== undefined) return;
  if (this.suite.suites.every(({ file }) => file?.includes('/test/unit/'))) return;
  await prepareTemporal();
  await (await import('./support/temporal.ts')).testTemporal();
}

export async function mochaGlobalTeardown(): Promise<void> {
  if (process.env.TEST_RUN !== undefined) return;
  await (await import('./support/temporal.ts')).stopTestTemporal();
  await (await import('./support/postgres.ts')).stopTestPostgres();
}

// In a worker process of a parallel run (test/run.ts), where mocha runs no global setup.
if (process.env.MOCHA_WORKER_ID !== undefined && TEST_SERVERS !== undefined) await prepareTemporal();

let since = performance.now();

/** In a parallel run, five files share two cores. A test's time limit is there to end what hangs, not to measure speed. */
const TIMES_LONGER = 5;

export const mochaHooks = {
  beforeAll(this: Context): void {
    if (process.env.TEST_RUN === undefined) return;
    this.test?.parent?.eachTest((test) => {
      test.timeout(test.timeout() * TIMES_LONGER);
    });
  },
  /** Mocha's processes send each other only an error's enumerable properties, which does not include its cause. */
  afterEach(this: Context): void {
    let { err } = this.currentTest as { err?: Error };
    for (; err instanceof Error && err.cause !== undefined; err = err.cause as Error) {
      Object.defineProperty(err, 'cause', { enumerable: true });
    }
  },
  /** After each file of a parallel run: records how long it took, including loading. */
  afterAll(this: Context): void {
    const file = this.test?.parent?.suites[0]?.file;
    if (TEST_DURATIONS === undefined || file === undefined) return;
    const now = performance.now();
    appendFileSync(TEST_DURATIONS, `${relative('.', file)} ${((now - since) / 1_000).toFixed(1)}\n`);
    since = now;
  },
};
