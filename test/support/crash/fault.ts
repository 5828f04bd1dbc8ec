import { existsSync, writeFileSync } from 'node:fs';

/** Where a worker is killed. */
export interface Fault {
  /** The names of an activity or a network call, one for each kind of operation. */
  steps: readonly string[];
  /** From an operation's nth run on, or in a run in which the network gave this answer. */
  run: number | 'accepted' | 'decided';
  when: 'before' | 'before commit' | 'after commit' | 'after';
}

/** A fault's place as a title names it: `before the step ask on run 1`. */
export function describePlace(step: string, { run, when }: Pick<Fault, 'run' | 'when'>): string {
  const around = when.replace(/ commit$/, ' the commit of');
  const which = typeof run === 'number' ? `on run ${run}` : `once the network has ${run}`;
  return `${around} the step ${step} ${which}`;
}

/** Where an operation is. */
export interface Place {
  step: string;
  run: number;
  said?: 'accepted' | 'decided';
  when: Fault['when'];
}

export interface FaultOptions {
  fault: Fault;
  /** How many operations have to reach the fault's place before the process is killed. */
  operationCount: number;
  /** The signal that it gets: SIGKILL unless given. After a SIGSTOP it can be continued. */
  signal?: 'SIGSTOP';
  /** The fault is off until this file exists, so that what the operations need can be made first. */
  armedFile: string;
  /** Written right before the kill, with the operations' claims. Once it exists, nothing is killed. */
  markerFile: string;
}

/**
 * Returns a function to call at every place. An operation that reaches the fault's place waits there. When all have
 * reached it, the process kills itself once, as by kill -9.
 */
export function armFault(options: FaultOptions): (place: Place, claimId: string) => Promise<void> {
  const { fault, operationCount, armedFile, markerFile } = options;
  if (existsSync(markerFile)) return async () => {};
  const standing = new Set<string>();
  let isOver = false;
  return async (place, claimId) => {
    if (!fault.steps.includes(place.step) || place.when !== fault.when) return;
    if (typeof fault.run === 'number' ? place.run < fault.run : place.said !== fault.run) return;
    if (isOver || !existsSync(armedFile)) return;
    standing.add(claimId);
    if (standing.size === operationCount) {
      writeFileSync(markerFile, JSON.stringify([...standing]));
      process.kill(process.pid, options.signal ?? 'SIGKILL');
      if (options.signal === 'SIGSTOP') {
        isOver = true;
        return;
      }
    }
    await new Promise(() => {});
  };
}
