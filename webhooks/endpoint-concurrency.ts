import { LRUCache } from 'lru-cache';

const INITIAL_SLOTS = 8;
const FEWEST_SLOTS = 2;
/** Twice the number of an endpoint's connections, so that they need not wait for the next read of events. */
export const MAX_SLOTS = 128;
const MAX_ENDPOINTS = 10_000;
/** Few, so that a receiver that serves few at a time serves what has just happened next. */
const REPLAY_SLOTS = 4;
/** An endpoint whose last success took longer shares the places of those that may not respond. */
const QUICK_MS = 1_000;
/**
 * So does one of which as many attempts as it began with have been in flight for longer, although others may
 * succeed: each attempt may first wait for the connection of another one.
 */
const HANGING_MS = 2 * QUICK_MS;

interface Endpoint {
  partnerId: string;
  slots: number;
  /** Whether its last success was quick. */
  isQuick: boolean;
  /** The oldest first. */
  inFlight: Set<AttemptInFlight>;
  /**
   * How many of the process's places it has: for attempts in flight, and for those that are being recorded.
   */
  places: number;
}

interface AttemptInFlight {
  /** By the clock. */
  beganAtMs: number;
  isReplayed: boolean;
}

/**
 * Which endpoints a read of events is for: all, or only those whose attempts have succeeded more than failed,
 * and quickly.
 */
export type EndpointsRead = 'all' | 'proven';

/**
 * How many attempts may be in flight for each endpoint: each success doubles its slots, each failure halves
 * them. So a dead receiver occupies few of the process's places, and all dead and slow ones together about
 * half. An account's endpoints get no more while they have half as many places as are free: a few accounts never
 * have all of them, and one alone can't make all of half hang, or fill them with what can't be recorded.
 */
export class EndpointConcurrency {
  /** How many of an endpoint's slots replayed events may have. */
  readonly replaySlots = REPLAY_SLOTS;
  readonly #maxInFlight: number;
  readonly #now: () => number;
  readonly #endpoints = new LRUCache<string, Endpoint>({ max: MAX_ENDPOINTS });

  /**
   * @param maxInFlight for all endpoints together
   * @param now milliseconds of a monotonic clock
   */
  constructor(maxInFlight: number, now: () => number = () => performance.now()) {
    this.#maxInFlight = maxInFlight;
    this.#now = now;
  }

  /**
   * Takes a place for an attempt, and a slot of its endpoint.
   * @returns `release` frees the slot, once; `succeededInMs` is how long the attempt took, null if it failed.
   * `end` frees the place
   */
  acquire(
    endpointId: string,
    partnerId: string,
    isReplayed: boolean,
  ): { release(succeededInMs: number | null): void; end(): void } {
    const endpoint = this.#endpoints.get(endpointId) ?? {
      partnerId,
      slots: INITIAL_SLOTS,
      isQuick: false,
      inFlight: new Set(),
      places: 0,
    };
    const attempt = { beganAtMs: this.#now(), isReplayed };
    endpoint.inFlight.add(attempt);
    endpoint.places += 1;
    this.#endpoints.set(endpointId, endpoint);
    return {
      release: (succeededInMs) => {
        if (!endpoint.inFlight.delete(attempt)) return;
        if (succeededInMs === null) {
          endpoint.slots = Math.max(Math.floor(endpoint.slots / 2), FEWEST_SLOTS);
          return;
        }
        endpoint.slots = Math.min(endpoint.slots * 2, MAX_SLOTS);
        endpoint.isQuick = succeededInMs < QUICK_MS;
      },
      end: () => {
        endpoint.places -= 1;
      },
    };
  }

  /**
   * How many endpoints have no free slot, and how many have fewer slots than initially because attempts
   * failed.
   */
  count(): { full: number; slowed: number } {
    const endpoints = [...this.#endpoints.values()];
    return {
      full: endpoints.filter(({ slots, inFlight }) => inFlight.size >= slots).length,
      slowed: endpoints.filter(({ slots }) => slots < INITIAL_SLOTS).length,
    };
  }

  /**
   * Endpoints that are not proven to respond quickly have half of the process's places, and what one read
   * takes. If these are taken, the rest is for the others.
   */
  nextRead(): EndpointsRead {
    let unproven = 0;
    for (const endpoint of this.#endpoints.values())
      if (!this.#isProven(endpoint)) unproven += endpoint.inFlight.size;
    return unproven < this.#maxInFlight / 2 ? 'all' : 'proven';
  }

  /** The slots of an endpoint without recent attempts. */
  initialSlots(read: EndpointsRead): number {
    return read === 'all' ? INITIAL_SLOTS : 0;
  }

  /** The free slots of each endpoint with recent attempts, by its id. */
  freeSlots(read: EndpointsRead): Record<string, number> {
    let freePlaces = this.#maxInFlight;
    const heldByAccount = new Map<string, number>();
    for (const { partnerId, places } of this.#endpoints.values()) {
      freePlaces -= places;
      heldByAccount.set(partnerId, (heldByAccount.get(partnerId) ?? 0) + places);
    }
    const free = [...this.#endpoints].map(([id, endpoint]) => {
      if (read === 'proven' && !this.#isProven(endpoint)) return [id, 0];
      const leftForAccount = Math.floor(freePlaces / 2) - (heldByAccount.get(endpoint.partnerId) ?? 0);
      return [id, Math.max(0, Math.min(endpoint.slots - endpoint.inFlight.size, leftForAccount))];
    });
    return Object.fromEntries(free);
  }

  /** Of those, the ones that replayed events may have, for each endpoint with replayed events in flight. */
  freeReplaySlots(): Record<string, number> {
    const free = [...this.#endpoints].map(([id, { inFlight }]): [string, number] => {
      const replays = [...inFlight].filter(({ isReplayed }) => isReplayed);
      return [id, Math.max(0, REPLAY_SLOTS - replays.length)];
    });
    return Object.fromEntries(free.filter(([, slots]) => slots < REPLAY_SLOTS));
  }

  #isProven({ slots, isQuick, inFlight }: Endpoint): boolean {
    if (!isQuick || slots <= INITIAL_SLOTS) return false;
    const newestOfMany = [...inFlight][INITIAL_SLOTS - 1];
    return newestOfMany === undefined || this.#now() - newestOfMany.beganAtMs < HANGING_MS;
  }
}
