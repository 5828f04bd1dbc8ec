import { LRUCache } from 'lru-cache';

const INITIAL_SLOTS = 8;
const FEWEST_SLOTS = 2;
/** Twice the number of an endpoint's connections, so that they need not wait for the next read of events. */
export const MAX_SLOTS = 128;
const MAX_ENDPOINTS = 10_000;
/** Few, so that a receiver that serves few at a time serves what has just happened next. */
const REPLAY_SLOTS = 4;

interface Endpoint {
  slots: number;
  inFlight: number;
  /** Those of a replay among them. */
  replaysInFlight: number;
}

/**
 * How many attempts may be in flight for each endpoint: each success doubles its slots, each failure halves
 * them. So dead receivers occupy few of the process's slots, however many there are.
 */
export class EndpointConcurrency {
  /** The slots of an endpoint without recent attempts. */
  readonly initialSlots = INITIAL_SLOTS;
  /** How many of an endpoint's slots replayed events may have. */
  readonly replaySlots = REPLAY_SLOTS;
  readonly #endpoints = new LRUCache<string, Endpoint>({ max: MAX_ENDPOINTS });

  acquire(endpointId: string, isReplayed: boolean): void {
    const endpoint = this.#endpoints.get(endpointId) ?? {
      slots: INITIAL_SLOTS,
      inFlight: 0,
      replaysInFlight: 0,
    };
    endpoint.inFlight += 1;
    if (isReplayed) endpoint.replaysInFlight += 1;
    this.#endpoints.set(endpointId, endpoint);
  }

  release(endpointId: string, isReplayed: boolean, succeeded: boolean): void {
    const endpoint = this.#endpoints.get(endpointId);
    if (endpoint === undefined) return;
    endpoint.inFlight -= 1;
    if (isReplayed) endpoint.replaysInFlight -= 1;
    endpoint.slots = succeeded
      ? Math.min(endpoint.slots * 2, MAX_SLOTS)
      : Math.max(Math.floor(endpoint.slots / 2), FEWEST_SLOTS);
  }

  /**
   * How many endpoints have no free slot, and how many have fewer slots than initially because attempts
   * failed.
   */
  count(): { full: number; slowed: number } {
    const endpoints = [...this.#endpoints.values()];
    return {
      full: endpoints.filter(({ slots, inFlight }) => inFlight >= slots).length,
      slowed: endpoints.filter(({ slots }) => slots < INITIAL_SLOTS).length,
    };
  }

  /** The free slots of each endpoint with recent attempts, by its id. */
  freeSlots(): Record<string, number> {
    const free = [...this.#endpoints].map(([id, { slots, inFlight }]) => [id, Math.max(0, slots - inFlight)]);
    return Object.fromEntries(free);
  }

  /** Of those, the ones that replayed events may have, for each endpoint with replayed events in flight. */
  freeReplaySlots(): Record<string, number> {
    const busy = [...this.#endpoints].filter(([, { replaysInFlight }]) => replaysInFlight > 0);
    return Object.fromEntries(
      busy.map(([id, { replaysInFlight }]) => [id, Math.max(0, REPLAY_SLOTS - replaysInFlight)]),
    );
  }
}
