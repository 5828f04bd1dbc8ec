import { stopTestPostgres } from './support/postgres.ts';
import { stopTestTemporal } from './support/temporal.ts';

/** What one run of the tests shares is started by the first test that needs it, and stopped here. */
export async function mochaGlobalTeardown(): Promise<void> {
  await stopTestTemporal();
  await stopTestPostgres();
}
