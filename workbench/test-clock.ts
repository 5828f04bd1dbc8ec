import { useOne } from './reading.ts';
import { useWorkbench } from './workbench.ts';

/** How many seconds the account's time is ahead of real time; 0 in live mode. */
export function useSecondsAhead(): number {
  const { session, api, can } = useWorkbench();
  const ahead = useOne(
    ['seconds ahead'],
    async (options) => {
      if (can('test:write')) return (await api.testHelpers.getClock(options)).offset_seconds;
      const { testClock } = (await api.account.ping(options)).lastResponse;
      return testClock === null ? 0 : wholeMinutes(Date.parse(testClock) - Date.now());
    },
    { isAllowed: session.mode === 'test', refreshMs: 15_000 },
  );
  return ahead.data ?? 0;
}

/** In seconds. The response took a moment, and the browser's own clock is not exact. */
const wholeMinutes = (ms: number): number => 60 * Math.round(ms / 60_000);

/** What time it is for the account, as an ISO time. */
export function useAccountTime(): string {
  return new Date(Date.now() + useSecondsAhead() * 1_000).toISOString();
}
