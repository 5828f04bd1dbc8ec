import { sql } from 'kysely';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';

/** How much may wait at once, and how many bytes of states. Past either, the network is asked to repeat. */
export const MAX_WAITING = 50_000;
export const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** How often a process counts what waits: of a full inbox, that takes 20 ms. */
const COUNT_EVERY_MS = 1_000;

/** What waits in the inbox. */
export interface InboxTotals {
  objects: number;
  bytes: number;
  oldestSeconds: number;
}

export async function readInboxTotals(orm: Orm): Promise<InboxTotals> {
  const [total] = await totals(orm.em.fork(), {});
  return total ?? { objects: 0, bytes: 0, oldestSeconds: 0 };
}

const totals = readStatement(
  () => sql<InboxTotals>`
    SELECT count(*)::int AS objects, coalesce(sum(size_bytes), 0)::int AS bytes,
      coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS "oldestSeconds"
    FROM network_inbox`,
);

/** How much of the room is taken; at 1, the network is asked to repeat. */
export const roomUsed = ({ objects, bytes }: Pick<InboxTotals, 'objects' | 'bytes'>): number =>
  Math.max(objects / MAX_WAITING, bytes / MAX_WAITING_BYTES);

/** The room that is left in the inbox, as one process knows it. */
export interface InboxRoom {
  /** Whether something that does not wait yet may, with a state of so many bytes. */
  has(sizeBytes: number): Promise<boolean>;
  /** It waits now. */
  take(sizeBytes: number): void;
}

/** Counts what waits once a second at most, and what this process adds to it itself. */
export function createInboxRoom(orm: Orm, nowMs: () => number = () => performance.now()): InboxRoom {
  let waiting: Pick<InboxTotals, 'objects' | 'bytes'> = { objects: 0, bytes: 0 };
  let counted: Promise<void> = Promise.resolve();
  let countedAtMs = Number.NEGATIVE_INFINITY;

  async function count(): Promise<void> {
    try {
      waiting = await readInboxTotals(orm);
    } catch (error) {
      countedAtMs = Number.NEGATIVE_INFINITY;
      throw error;
    }
  }

  return {
    async has(sizeBytes) {
      if (nowMs() - countedAtMs >= COUNT_EVERY_MS) {
        countedAtMs = nowMs();
        counted = count();
      }
      await counted;
      return waiting.objects < MAX_WAITING && waiting.bytes + sizeBytes <= MAX_WAITING_BYTES;
    },
    take(sizeBytes) {
      waiting = { objects: waiting.objects + 1, bytes: waiting.bytes + sizeBytes };
    },
  };
}
