import { z } from 'zod';
import { processIdentity } from './process-identity.ts';
import { readJsonFile } from './read-json-file.ts';
import { writePrivateFile } from './write-private-file.ts';

const Entries = z.array(z.object({ name: z.string(), pid: z.number(), identity: z.string() }));

export type RecordedChild = z.infer<typeof Entries>[number];

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
    // It may have ended already: nothing to find, then.
    if (identity === undefined) return;
    writePrivateFile(this.#file, JSON.stringify([...this.running(), { name, pid, identity }], null, 2));
  }
}
