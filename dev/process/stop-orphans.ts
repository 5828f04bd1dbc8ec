import { setTimeout as delay } from 'node:timers/promises';
import type { ChildRegistry, RecordedChild } from './child-registry.ts';
import { processIdentity } from './process-identity.ts';

/** PostgreSQL takes SIGTERM for "wait until everybody has left". */
const GENTLY: Readonly<Record<string, NodeJS.Signals>> = { PostgreSQL: 'SIGINT' };
const GRACE_MS = 5_000;

/** Stops what a killed stack left running, those started last first. */
export async function stopOrphans(registry: ChildRegistry, report: (line: string) => void): Promise<void> {
  for (const child of registry.running().reverse()) {
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
