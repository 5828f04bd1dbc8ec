import { setTimeout as sleep } from 'node:timers/promises';
import { childrenOf } from '../support/dev/stack-process.ts';
import { killServer } from '../support/postgres.ts';
import { until } from '../support/until.ts';
import type { drawKills, Kill, Victim } from './draw-kills.ts';
import type { SoakedStack } from './soaked-stack.ts';

/** If a client has waited this long for an answer, or an operator for a decision's effect, the next kill waits for it. */
const MAX_WAIT_MS = 30_000;

export interface Killing {
  /** The kills so far. */
  kills: readonly Kill[];
  /** Returns once every victim is back. Nothing is killed until the function it returns is called. */
  pause(): Promise<() => void>;
  /** Resolves when all kills are done; rejects if a process is not back within four minutes. */
  ended: Promise<void>;
}

/**
 * Kills one process after the other. A kill waits until the same process is back from its last one, and while a client or an
 * operator has waited too long. It does not wait for other processes, so several are often down at the same time.
 */
export function startKilling(
  stack: SoakedStack,
  drawn: ReturnType<typeof drawKills>,
  stopped: AbortSignal,
): Killing {
  const kills: Kill[] = [];
  const recoveries = new Map<Victim, Promise<void>>();
  let paused: Promise<void> | undefined;
  const killAll = async () => {
    for (const { victim, pauseMs } of drawn) {
      // The pause comes after the recovery, so that the process has time to work.
      await recoveries.get(victim);
      await sleep(pauseMs);
      while (paused !== undefined || (isSomebodyStarved(stack) && !stopped.aborted)) {
        await (paused ?? sleep(200));
      }
      if (stopped.aborted) break;
      const kill: Kill = { victim, recoveredAfterMs: undefined };
      kills.push(kill);
      const recovery = killOnce(stack, kill);
      recovery.catch(() => {});
      recoveries.set(victim, recovery);
    }
    await Promise.all(recoveries.values());
  };
  return {
    kills,
    async pause() {
      const { promise, resolve } = Promise.withResolvers<void>();
      paused = promise;
      await Promise.allSettled(recoveries.values());
      return () => {
        paused = undefined;
        resolve();
      };
    },
    ended: killAll(),
  };
}

/** Requests that are repeated with growing pauses might otherwise never find all processes up. */
function isSomebodyStarved({ service }: SoakedStack): boolean {
  return [...service.waiting].some(({ sinceMs }) => Date.now() - sinceMs > MAX_WAIT_MS);
}

async function killOnce({ supervisor, dataDir }: SoakedStack, kill: Kill): Promise<void> {
  const { victim } = kill;
  const timesBack = () => supervisor.lines.filter((line) => line === `${victim} is running again`).length;
  const before = timesBack();
  const pid = childrenOf(dataDir).get(victim);
  if (pid === undefined) throw new Error(`there is no ${victim} to kill`);
  const killedAt = Date.now();
  if (victim === 'PostgreSQL') await killServer(pid);
  else process.kill(pid, 'SIGKILL');
  await until(`${victim} is running again`, () => {
    if (supervisor.hasEnded())
      throw new Error(`npm start has ended:\n${supervisor.lines.slice(-20).join('\n')}`);
    return timesBack() > before;
  });
  kill.recoveredAfterMs = Date.now() - killedAt;
}
