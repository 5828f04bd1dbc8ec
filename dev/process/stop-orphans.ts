import { setTimeout as delay } from 'node:timers/promises';
import type { ChildRegistry, RecordedChild } from './child-registry.ts';
import { processIdentity } from './process-identity.ts';

/** Everything else keeps its data there. */
const LAST = 'PostgreSQL';

/** PostgreSQL takes SIGTERM for "wait until everybody has left". */
const GENTLY: Readonly<Record<string, NodeJS.Signals>> = { [LAST]: 'SIGINT' };
const GRACE_MS = 5_000;

/** Stops what a killed stack left running, those started last first and PostgreSQL in the end. */
export async function stopOrphans(registry: ChildRegistry, report: (line: string) => void): Promise<void> {
  const orphans = registry.running().reverse();
  const inOrder = [
    ...orphans.filter(({ name }) => name !== LAST),
    ...orphans.filter(({ name }) => name === LAST),
  ];
  for (const child of inOrder) {
    report(`stopping ${child.name} (process ${child.pid}), which an earlier stack left running`);
    for (const signal of [GENTLY[child.name] ?? 'SIGTERM', 'SIGKILL'] as const) {
      if (signals(child, signal) && (await endsWithin(child, GRACE_MS))) break;
    }
    if (runs(child)) throw new Error(`${child.name} (process ${child.pid}) does not end; kill it by hand`);
  }
}

function runs(child: RecordedChild): boolean {
  return processIdentity(child.pid) === child.identity;
}

function signals(child: RecordedChild, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(child.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return true;
    throw error;
  }
}

async function endsWithin(child: RecordedChild, graceMs: number): Promise<boolean> {
  for (const giveUpAt = Date.now() + graceMs; Date.now() < giveUpAt; await delay(50)) {
    if (!runs(child)) return true;
  }
  return !runs(child);
}
