import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { readCatchingUp } from '../commands/accounts/test-clock.ts';
import type { Orm } from '../db/orm.ts';
import { type Repetition, repeat } from '../process/repeat.ts';

const INTERVAL_MS = 1_000;
/** Between two looks while sandbox clocks catch up: if the last one made room for the next thing, and if not. */
const PAUSE_MS = 5;
const POLL_MS = 50;

/**
 * Looks once a second for what is due. Right after an advance of a sandbox clock, when one thing waits for another, it looks much
 * more often, at the accounts of such clocks alone, so that what one partner does costs little (docs/decisions/sandbox-clock.md).
 * @param look gets the accounts to look at, null for all, and returns whether to look again at once
 */
export function repeatByClock(
  what: string,
  { orm, logger }: { orm: Orm; logger: Logger },
  look: (only: readonly string[] | null, stopping: AbortSignal) => Promise<boolean>,
): Repetition {
  return repeat(what, INTERVAL_MS, logger, async (stopping) => {
    let allAgainAtMs = performance.now() + INTERVAL_MS;
    let isMore = await look(null, stopping);
    for (;;) {
      const catchingUp = await readCatchingUp(orm.em.fork());
      if (stopping.aborted || (!isMore && catchingUp.length === 0)) return;
      await sleep(isMore ? PAUSE_MS : POLL_MS);
      if (catchingUp.length === 0 || performance.now() >= allAgainAtMs) {
        allAgainAtMs = performance.now() + INTERVAL_MS;
        isMore = await look(null, stopping);
      } else isMore = await look(catchingUp, stopping);
    }
  });
}
