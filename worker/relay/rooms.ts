import { LRUCache } from 'lru-cache';
import type { Mode } from '../../domain/mode.ts';

const FIRST_ROOM = 8;
const SMALLEST_ROOM = 2;
/** Twice the connections an endpoint has, so that these need not wait for the next read of events. */
export const LARGEST_ROOM = 128;
const MOST_ACCOUNTS = 10_000;

export interface Account {
  partnerId: string;
  mode: Mode;
}

interface Room {
  size: number;
  taken: number;
}

/**
 * How many attempts may be under way for each account's endpoint. A receiver that answers gets room for more, one that
 * fails or hangs for less: so dead receivers hold few of the process's places, however many there are.
 */
export class Rooms {
  /** What an account has that was not heard of lately. */
  readonly firstRoom = FIRST_ROOM;
  readonly #rooms = new LRUCache<string, Room>({ max: MOST_ACCOUNTS });

  enter(account: Account): void {
    const key = keyOf(account);
    const room = this.#rooms.get(key) ?? { size: FIRST_ROOM, taken: 0 };
    room.taken += 1;
    this.#rooms.set(key, room);
  }

  leave(account: Account, succeeded: boolean): void {
    const room = this.#rooms.get(keyOf(account));
    if (room === undefined) return;
    room.taken -= 1;
    room.size = succeeded
      ? Math.min(room.size * 2, LARGEST_ROOM)
      : Math.max(Math.floor(room.size / 2), SMALLEST_ROOM);
  }

  /** The places left for each account that was heard of lately, by `<partnerId>/<mode>`. */
  free(): Record<string, number> {
    const places = [...this.#rooms].map(([key, { size, taken }]) => [key, Math.max(0, size - taken)]);
    return Object.fromEntries(places);
  }
}

const keyOf = ({ partnerId, mode }: Account) => `${partnerId}/${mode}`;
