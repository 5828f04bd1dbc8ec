import { useOne } from './reading.ts';
import { useWorkbench } from './workbench.ts';

/** How many seconds the account's time is ahead of real time; 0 in live mode, and without the scope to know. */
export function useSecondsAhead(): number {
  const { session, api, can } = useWorkbench();
  const clock = useOne(['clock'], (options) => api.testHelpers.getClock(options), {
    isAllowed: session.mode === 'test' && can('test:write'),
    refreshMs: 15_000,
  });
  return clock.data?.offset_seconds ?? 0;
}

/** What time it is for the account, as an ISO time. */
export function useAccountTime(): string {
  return new Date(Date.now() + useSecondsAhead() * 1_000).toISOString();
}
