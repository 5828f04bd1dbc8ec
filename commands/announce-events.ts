import { setTimeout as sleep } from 'node:timers/promises';
import { EVENT_WRITTEN } from '../db/channels.ts';
import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';
import { asService } from '../db/working-for.ts';

/** How far apart those of one process are: under load a few hundred settlements share one. */
const PAUSE_MS = 10;

/** Tells the relays that there are events to send. A statement of its own after the commit, as {@link announceAnswer}. */
export async function announceEvents(orm: Orm): Promise<void> {
  await query(orm.em.fork(), 'SELECT pg_notify($1, $2)', [EVENT_WRITTEN, '']);
}

/**
 * {@link announceEvents} for who writes events all the time: at once where it is quiet, else soon, together with others.
 * @param onError is told what went wrong; the relays then find the events when they next look by themselves.
 */
export function createEventAnnouncer(orm: Orm, onError: (error: unknown) => void): () => void {
  let isUnderWay = false;
  let isWanted = false;
  async function announce(): Promise<void> {
    isUnderWay = true;
    while (isWanted) {
      isWanted = false;
      await announceEvents(orm).catch(onError);
      await sleep(PAUSE_MS, undefined, { ref: false });
    }
    isUnderWay = false;
  }
  return () => {
    isWanted = true;
    // For all accounts, whichever of them was the first.
    if (!isUnderWay) void asService('events', announce);
  };
}
