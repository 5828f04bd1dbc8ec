import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

/** Where an operation stands when its process is killed. */
export interface Fault {
  /** The name of an activity or a network call. */
  step: string;
  /** From an operation's nth run on, or in a run in which the network gave this answer. */
  run: number | 'accepted' | 'decided';
  when: 'before' | 'before commit' | 'after commit' | 'after';
}

export const EVERYWHERE: Fault['when'][] = ['before', 'before commit', 'after commit', 'after'];

/** Faults of one step in one run. */
export const faultsOf = <Step extends string>(step: Step, run: Fault['run'], whens = EVERYWHERE) =>
  whens.map((when) => ({ step, run, when }));

/** A fault's place as a title names it: `before the step ask on run 1`. */
export function describePlace({ step, run, when }: Fault): string {
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

/** The fault of an operation of this partner. */
export interface ArmedFault {
  fault: Fault;
  /** Null: any partner's. */
  partnerId: string | null;
}

export interface FaultOptions {
  /** Has the {@link ArmedFault}s. There are none until this file exists, so that what the operations need can be made first. */
  armedFile: string;
  /** Written right before the kill, with the operations' claims. Once it exists, nothing is killed. */
  markerFile: string;
  /** The signal that the process gets: SIGKILL unless given. After a SIGSTOP it can be continued. */
  signal?: 'SIGSTOP';
}

export function arm({ armedFile }: FaultOptions, faults: readonly ArmedFault[]): void {
  writeFileSync(`${armedFile}.new`, JSON.stringify(faults));
  renameSync(`${armedFile}.new`, armedFile);
}

/** The partners whose operations stand at their faults' places, if each fault names its partner. */
export function standingPartners({ markerFile }: FaultOptions): string[] {
  const file = standingFile(markerFile);
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
}

const standingFile = (markerFile: string) => `${markerFile}.partners`;

/**
 * Returns a function to call at every place. An operation that reaches its fault's place waits there. When all have reached
 * theirs, the process kills itself once, as by kill -9.
 * @param partnerOf whose operation a claim is of
 */
export function faultPoint(
  { armedFile, markerFile, signal }: FaultOptions,
  partnerOf: (claimId: string) => Promise<string | undefined>,
): (place: Place, claimId: string) => Promise<void> {
  let isOver = existsSync(markerFile);
  let faults: (ArmedFault & { claimId: string | null })[] | undefined;
  return async (place, claimId) => {
    if (isOver || !existsSync(armedFile)) return;
    faults ??= (JSON.parse(readFileSync(armedFile, 'utf8')) as ArmedFault[]).map((armed) => ({
      ...armed,
      claimId: null,
    }));
    // An attempt that times out here is followed by another step, at which the operation stands as well.
    if (faults.some((armed) => armed.claimId === claimId)) await new Promise(() => {});
    const isOfAny = faults.every(({ partnerId }) => partnerId === null);
    const partnerId = isOfAny ? null : await partnerOf(claimId);
    const reached = faults.find((armed) => armed.partnerId === partnerId && isAt(armed.fault, place));
    if (reached === undefined || isOver) return;
    reached.claimId = claimId;
    appendFileSync(standingFile(markerFile), `${partnerId}\n`);
    if (faults.every((fault) => fault.claimId !== null)) {
      writeFileSync(markerFile, JSON.stringify(faults.map((fault) => fault.claimId)));
      process.kill(process.pid, signal ?? 'SIGKILL');
      if (signal === 'SIGSTOP') {
        isOver = true;
        return;
      }
    }
    await new Promise(() => {});
  };
}

function isAt({ step, run, when }: Fault, place: Place): boolean {
  if (step !== place.step || when !== place.when) return false;
  return typeof run === 'number' ? place.run >= run : place.said === run;
}
