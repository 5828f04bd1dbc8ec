import { existsSync, writeFileSync } from 'node:fs';

/** Where a worker is killed. */
export interface Fault {
  /** An activity, or a call of the network. */
  step: string;
  /** From its nth run for a card on, or a run in which the network said this. */
  run: number | 'accepted' | 'decided';
  when: 'before' | 'before commit' | 'after commit' | 'after';
}

/** Where a card's issuance is. */
export interface Place {
  step: string;
  run: number;
  said?: 'accepted' | 'decided';
  when: Fault['when'];
}

export interface FaultOptions {
  fault: Fault;
  /** How many cards have to stand at the fault's place before the process is killed. */
  cardCount: number;
  /** Written right before that, with the cards' ids: where it exists, nothing is killed any more. */
  markerFile: string;
}

/**
 * Returns what every place is announced to. A card that comes to the fault's place stays there; when all are there the
 * process kills itself, as by kill -9. Once.
 */
export function armFault(options: FaultOptions): (place: Place, cardId: string) => Promise<void> {
  const { fault, cardCount, markerFile } = options;
  if (existsSync(markerFile)) return async () => {};
  const standing = new Set<string>();
  return async (place, cardId) => {
    if (place.step !== fault.step || place.when !== fault.when) return;
    if (typeof fault.run === 'number' ? place.run < fault.run : place.said !== fault.run) return;
    standing.add(cardId);
    if (standing.size === cardCount) {
      writeFileSync(markerFile, JSON.stringify([...standing]));
      process.kill(process.pid, 'SIGKILL');
    }
    await new Promise(() => {});
  };
}
