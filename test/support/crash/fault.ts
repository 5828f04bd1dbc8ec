import { existsSync, writeFileSync } from 'node:fs';

/** Where a worker is killed. */
export interface Fault {
  /** An activity or a call of the network, by what they are called for each kind of operation. */
  steps: readonly string[];
  /** From its nth run for an operation on, or a run in which the network said this. */
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
  /** How many operations have to stand at the fault's place before the process is killed. */
  operationCount: number;
  /** What it is killed with: SIGKILL unless given. After a SIGSTOP it goes on from there when it is let. */
  signal?: 'SIGSTOP';
  /** While it does not exist nothing stands anywhere: what the operations are about is made first. */
  armedFile: string;
  /** Written right before the kill, with the operations' claims: where it exists, nothing is killed any more. */
  markerFile: string;
}

/**
 * Returns what every place is announced to. An operation that comes to the fault's place stays there; when all are there
 * the process kills itself, as by kill -9. Once.
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
