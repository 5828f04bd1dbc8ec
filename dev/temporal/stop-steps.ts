import type { StopStep } from '../process/start-child.ts';

/** Everything is in its database: nothing is lost by the second step, SIGKILL. */
export const STOP_STEPS: readonly StopStep[] = [{ signal: 'SIGTERM', graceMs: 2_500 }];
