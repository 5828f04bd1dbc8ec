import { pino } from 'pino';
import { installRuntime } from '../worker/install-runtime.ts';
import { stopTestPostgres } from './support/postgres.ts';
import { stopTestTemporal, testTemporal } from './support/temporal.ts';

/** Before any test's own time limit runs: the Temporal server may have to be built first, which takes minutes. */
export async function mochaGlobalSetup(): Promise<void> {
  installRuntime(pino({ level: 'error' }, process.stderr));
  await testTemporal();
}

export async function mochaGlobalTeardown(): Promise<void> {
  await stopTestTemporal();
  await stopTestPostgres();
}
