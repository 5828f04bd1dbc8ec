import { z } from 'zod';
import { readJsonFile, writePrivateFile } from './files.ts';
import { endProcess, processIdentity } from './identity.ts';

const Entries = z.array(z.object({ name: z.string(), pid: z.number(), identity: z.string() }));

type RecordedChild = z.infer<typeof Entries>[number];

/** The children of a stack, on disk, so that the next stack finds those whose stack was killed. */
export class ChildRegistry {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** Those that still run, in the order they were started. */
  running(): RecordedChild[] {
    const entries = readJsonFile(this.#file, Entries) ?? [];
    return entries.filter((entry) => processIdentity(entry.pid) === entry.identity);
  }

  record(name: string, pid: number): void {
    const identity = processIdentity(pid);
    // It has already ended, so there is nothing to find later.
    if (identity === undefined) return;
    writePrivateFile(this.#file, JSON.stringify([...this.running(), { name, pid, identity }], null, 2));
  }
}

/** Everything else keeps its data in it. */
const LAST = 'PostgreSQL';

/** Stops what a killed stack left running: the last started first, PostgreSQL at the end. */
export async function stopOrphans(registry: ChildRegistry, report: (line: string) => void): Promise<void> {
  const orphans = registry.running().reverse();
  const inOrder = [
    ...orphans.filter(({ name }) => name !== LAST),
    ...orphans.filter(({ name }) => name === LAST),
  ];
  for (const child of inOrder) {
    report(`stopping ${child.name} (process ${child.pid}), which an earlier stack left running`);
    // On SIGTERM, PostgreSQL would wait until every client has disconnected.
    await endProcess(child, [child.name === LAST ? 'SIGINT' : 'SIGTERM', 'SIGKILL']);
  }
}
