import { setTimeout as sleep } from 'node:timers/promises';
import { DEPOSIT_CHANGED, EVENT_WRITTEN } from '../../db/notifications.ts';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import { coalesce } from '../../process/coalesce.ts';
import { asService } from '../../process/working-for.ts';

/** How far apart those of one process are: under load a few hundred settlements share one. */
const PAUSE_MS = 10;

/** Tells the relays that there are events to send. A statement of its own after the commit, as {@link announceAnswer}. */
export async function announceEvents(orm: Orm): Promise<void> {
  await query(orm.em.fork(), 'SELECT pg_notify($1, $2)', [EVENT_WRITTEN, '']);
}

/** Tells the workers that a deposit's row was made or changed, in the manner of {@link announceEvents}. */
export async function announceDeposits(orm: Orm): Promise<void> {
  await query(orm.em.fork(), 'SELECT pg_notify($1, $2)', [DEPOSIT_CHANGED, '']);
}

/**
 * Either of these for who has news all the time: at once where it is quiet, else soon, together with others.
 * @param onError is told what went wrong; whoever is to hear of the news then finds it when it next looks by itself.
 */
export function createAnnouncer(
  announce: () => Promise<void>,
  onError: (error: unknown) => void,
): () => void {
  const wanted = coalesce<null, void>({
    mostTogether: Number.POSITIVE_INFINITY,
    run: (calls) =>
      // For all accounts, whichever of them was the first.
      asService('announcements', async () => {
        await announce().catch(onError);
        await sleep(PAUSE_MS, undefined, { ref: false });
        return calls.map(() => undefined);
      }),
  });
  return () => void wanted(null);
}
