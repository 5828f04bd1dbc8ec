import { Counter, Gauge, type Metric } from 'prom-client';
import type { Tenant } from '../db/tenant.ts';
import { NoTurn, Turns } from '../db/turns.ts';
import { ApiError } from '../domain/api-error.ts';

/** How many requests of an account may be here beyond those at work. */
const QUEUE_LENGTH = 200;

/** How many requests of an account are served at a time where other accounts are served too. */
const REQUESTS_BESIDE_OTHERS = 2;
/** The same of requests that start workflows, each of which costs ten times what another does. */
const STARTS_BESIDE_OTHERS = 1;
/** And of all accounts together. */
const REQUESTS = 16;
const STARTS = 8;
/** For so long an account that has asked for something counts as one of the others. */
const BESIDE_MS = 10_000;

export interface AdmissionOptions {
  /** How many requests of an account, which is a partner in one mode, are at work at once. */
  accountConcurrency: number;
  /** How long a request may wait before its work begins. */
  longestWaitMs: number;
  /** After that a request takes no other's turn any more: what it still waits for is a lock. */
  longestTurnMs: number;
  /** The same of one that starts a workflow; it passes its turn as soon as its money is held. */
  longestStartMs: number;
}

/** One request on its way through. */
export interface Visit {
  /**
   * Waits until it is the request's turn to work. Nothing of it may have begun before.
   * @param startsWorkflow whether its work is a workflow's
   * @returns false where it has left meanwhile
   * @throws ApiError `unavailable` where that took too long, or the process stops
   */
  begin(startsWorkflow: boolean): Promise<boolean>;
  /** Lets another work, though it is not done: what is left of it waits for the card network. */
  passTurn(): void;
  /** Nobody waits for its answer: it waits no longer. */
  leave(): void;
  /** Gives back what the request holds, whether it worked, waited or neither. */
  end(): void;
}

export interface Admission {
  /** @throws ApiError `rate_limited` where the account's queue is full, `unavailable` where the process stops */
  arrive(account: Tenant): Visit;
  /** Refuses those that wait and those to come; what is at work ends by itself. */
  stop(): void;
  metrics: Metric[];
}

type Ending = 'left' | 'too_late' | 'stopping';

/** Whether a request's body is still coming, whether it waits for its turn, or works. */
interface Stay {
  at: 'door' | 'queue' | 'work';
  /** Aborted with its {@link Ending} when it is to wait no longer. */
  waiting: AbortController;
}

/**
 * Lets each account have so many requests at work in this process; the rest wait in the account's own queue, first come
 * first served. The accounts are served in turn, few requests at a time (docs/decisions/fair-admission.md).
 */
export function createAdmission({
  accountConcurrency,
  longestWaitMs,
  longestTurnMs,
  longestStartMs,
}: AdmissionOptions): Admission {
  const places = new Turns({ places: Number.POSITIVE_INFINITY, each: accountConcurrency, longestWaitMs });
  const requests = paced(Math.max(accountConcurrency, REQUESTS), REQUESTS_BESIDE_OTHERS);
  const starts = paced(STARTS, STARTS_BESIDE_OTHERS);
  /** When each account asked last, the longest ago first. */
  const active = new Map<string, number>();
  /** All requests in this process, by account. */
  const present = new Map<string, Set<Stay>>();
  const metrics = createMetrics(() => [...present.values()].flatMap((stays) => [...stays]));
  let stopping = false;

  function arrive({ partnerId, mode }: Tenant): Visit {
    const account = `${partnerId}/${mode}`;
    const stays = present.get(account) ?? new Set();
    if (stopping) throw refusal('stopping');
    if (stays.size >= accountConcurrency + QUEUE_LENGTH) throw refusal('queue_full');
    const stay: Stay = { at: 'door', waiting: new AbortController() };
    present.set(account, stays.add(stay));
    const held: (() => void)[] = [];
    let passTurn = () => {};

    return {
      async begin(startsWorkflow) {
        const { signal } = stay.waiting;
        const patience = setTimeout(() => stay.waiting.abort('too_late'), longestWaitMs);
        stay.at = 'queue';
        try {
          held.push(await places.take(account, signal));
          countAsActive(account);
          const giveBack = await (startsWorkflow ? starts : requests).take(account, signal);
          const timer = setTimeout(giveBack, startsWorkflow ? longestStartMs : longestTurnMs);
          held.push(giveBack, () => clearTimeout(timer));
          passTurn = giveBack;
        } catch (error) {
          const ending: Ending = signal.aborted ? signal.reason : 'too_late';
          if (!signal.aborted && !(error instanceof NoTurn)) throw error;
          if (ending === 'left') return false;
          throw refusal(ending);
        } finally {
          clearTimeout(patience);
        }
        stay.at = 'work';
        return true;
      },
      passTurn: () => passTurn(),
      leave: () => stay.waiting.abort('left'),
      end() {
        for (const giveBack of held) giveBack();
        stays.delete(stay);
        if (stays.size === 0) present.delete(account);
      },
    };
  }

  /** Turns of which an account may have all where it is alone. */
  function paced(turns: number, besideOthers: number): Turns {
    return new Turns({
      places: turns,
      get each() {
        return active.size > 1 ? besideOthers : turns;
      },
      longestWaitMs,
    });
  }

  function countAsActive(account: string): void {
    const nowMs = performance.now();
    active.delete(account);
    active.set(account, nowMs);
    for (const [other, askedMs] of active) {
      if (askedMs > nowMs - BESIDE_MS) break;
      active.delete(other);
    }
  }

  function refusal(reason: keyof typeof REFUSALS): ApiError {
    metrics.refused.inc({ reason });
    const { code, ...detail } = REFUSALS[reason];
    return new ApiError(code, detail);
  }

  return {
    arrive,
    stop() {
      stopping = true;
      for (const stays of present.values()) for (const { waiting } of stays) waiting.abort('stopping');
    },
    metrics: Object.values(metrics),
  };
}

const REFUSALS = {
  queue_full: {
    code: 'rate_limited',
    message:
      'This account has too many requests in progress and waiting. Retry after the number of seconds in Retry-After, and ' +
      'send fewer at once.',
    retryAfterSeconds: 1,
  },
  too_late: {
    code: 'unavailable',
    message:
      "This request waited too long for this account's earlier requests and was not started. Retry it with the same " +
      'Idempotency-Key, and send fewer requests at once.',
    retryAfterSeconds: 1,
  },
  stopping: {
    code: 'unavailable',
    message: 'The server is restarting and did not start this request. Retry with the same Idempotency-Key.',
    retryAfterSeconds: 1,
  },
} as const;

function createMetrics(stays: () => Stay[]) {
  const count = (at: Stay['at']) => stays().filter((stay) => stay.at === at).length;
  return {
    atWork: new Gauge({
      name: 'admission_requests_at_work',
      help: 'Requests in progress, across all accounts',
      registers: [],
      collect() {
        this.set(count('work'));
      },
    }),
    waiting: new Gauge({
      name: 'admission_requests_waiting',
      help: 'Requests waiting for their turn, across all accounts',
      registers: [],
      collect() {
        this.set(count('queue'));
      },
    }),
    refused: new Counter({
      name: 'admission_requests_refused_total',
      help: 'Requests refused before they were started, by reason',
      labelNames: ['reason'],
      registers: [],
    }),
  };
}
