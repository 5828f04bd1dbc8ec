import { enableCompileCache } from 'node:module';
import { resolve } from 'node:path';
import v8 from 'node:v8';
import fc from 'fast-check';
import type { Context } from 'mocha';
import './support/built-statements.ts';
import { stopWaiting, waitingFor } from './support/until.ts';

const compileCache = resolve('node_modules/.cache/node');
enableCompileCache(compileCache);
// The processes that tests start load the same files.
process.env.NODE_COMPILE_CACHE = compileCache;
// Tests stop workers in the middle of their work, which can make the SDK's core panic: its backtraces do not help.
process.env.RUST_BACKTRACE = '0';
// Workflows run in the process's own thread: a worker starts in a quarter of the time.
process.env.TEMPORAL_DEBUG = '1';
// There, the SDK would follow every promise of the process, for stack traces of workflows that no test asks for.
v8.promiseHooks.createHook = () => () => {};

/** Properties draw the same in every run. TEST_SEED draws others, `npm run test:load` at random. */
const seed = Number(process.env.TEST_SEED ?? 1);
// Shrinking would run a failed script of requests hundreds of times.
fc.configureGlobal({ seed, endOnFailure: true });

/** Without these there are no servers, which take three seconds to start. */
const isUnitOnly = () => {
  const specs = process.argv.filter((argument) => argument.startsWith('test/'));
  return specs.length > 0 && specs.every((spec) => spec.startsWith('test/unit'));
};

let stopServers: (() => Promise<void>) | undefined;

/** Runs once a run, before any of its processes loads a file. */
export async function mochaGlobalSetup(): Promise<void> {
  console.log(`Properties draw from TEST_SEED=${seed}.`);
  if (isUnitOnly()) return;
  await installQuietRuntime();
  stopServers = await (await import('./support/start-servers.ts')).startServers();
}

export async function mochaGlobalTeardown(): Promise<void> {
  await stopServers?.();
}

async function installQuietRuntime(): Promise<void> {
  const { pino } = await import('pino');
  const { installRuntime } = await import('../platform/temporal/install-runtime.ts');
  installRuntime(pino({ level: 'error' }, process.stderr));
}

// In a process of a parallel run, where mocha runs no global setup.
if (process.env.MOCHA_WORKER_ID !== undefined && process.env.TEST_SERVERS !== undefined)
  await installQuietRuntime();

export const mochaHooks = {
  afterEach(this: Context): void {
    let { err } = this.currentTest as { err?: Error };
    if (err?.message.startsWith('Timeout of')) {
      const { message } = err;
      err.message += ` It was waiting until: ${waitingFor().join('; ')}.`;
      // What the reporter prints; it holds the message as it was.
      err.stack = err.stack?.replace(message, err.message);
    }
    // Mocha's processes send each other only an error's enumerable properties, which do not include its cause.
    for (; err instanceof Error && err.cause !== undefined; err = err.cause as Error) {
      Object.defineProperty(err, 'cause', { enumerable: true });
    }
  },
  /** After each file of a parallel run. */
  afterAll(): void {
    stopWaiting();
  },
};
