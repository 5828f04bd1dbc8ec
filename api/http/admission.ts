import { Counter, Gauge, type Metric } from 'prom-client';
import { ApiError } from '../../domain/api-error.ts';
import type { Tenant } from '../../domain/mode.ts';
import { Turns } from '../../platform/process/turns.ts';

/**
 * Keys that may be made up are looked up on behalf of one pseudo-account, so that a flood of them slows
 * nobody else. It is nobody's company, and always has some.
 */
export const STRANGERS = 'strangers';

/** How many of an account's requests may wait, beyond those in progress. */
const QUEUE_LENGTH = 200;

/** How many of an account's requests run at once while other accounts are active. */
const REQUESTS_BESIDE_OTHERS = 2;
/** The same for requests that start workflows, which cost ten times as much as others. */
const STARTS_BESIDE_OTHERS = 1;
/** The same limits across all accounts. */
const REQUESTS = 16;
const STARTS = 8;
/**
 * How long an account's turn rests after a large body was read or a large response made, by which no other
 * request was served: several times as long as that takes. So large ones take no more than a fifth or so of a
 * processor from others.
 */
const LARGE_BODY = { fromBytes: 16_384, bytesPerMs: 2_000 };
const LARGE_RESPONSE = { fromBytes: 65_536, bytesPerMs: 7_000 };
/** How long an account counts as active after a request. */
const BESIDE_MS = 10_000;
/** How many active accounts a process reports to the others: the most recently active ones. */
const MAX_SHARED_ACCOUNTS = 100;

interface AdmissionOptions {
  /** How many requests of an account (a partner in one mode) are in progress at once. */
  accountConcurrency: number;
  /** How long a request may wait for its turn before it is refused. */
  maxWaitMs: number;
  /** How long a request may keep its turn; after that, it is only waiting for a lock. */
  maxTurnMs: number;
  /** The same for a request that starts a workflow, which passes its turn on as soon as its money is held. */
  maxStartMs: number;
}

/** One request's way through admission. */
interface Visit {
  /**
   * Waits for the request's turn. None of its work may start before that.
   * @param startsWorkflow whether the request starts a workflow
   * @returns false if the client has left in the meantime
   * @throws ApiError `unavailable` if the wait is too long, or the process is stopping
   */
  begin(startsWorkflow: boolean): Promise<boolean>;
  /** Gives the turn to another request, because the rest of this one only waits for the card network. */
  passTurn(): void;
  /** The client has left: stop waiting. */
  leave(): void;
  /** Releases what the request holds, however far it got, and what it has transferred within its turn. */
  end(transferred?: Transferred): void;
}

interface Transferred {
  bodyBytes: number;
  responseBytes: number;
}

export interface Admission {
  /**
   * @throws ApiError `rate_limited` if the account's queue is full, `unavailable` if the process is stopping
   */
  arrive(account: Tenant): Visit;
  /**
   * Reports to the other processes which accounts are active here, and learns which are active there. While
   * no account is active here, it does not call `share`. If `share` fails, it keeps what it knew.
   */
  exchange(share: (accounts: readonly string[]) => Promise<string[][]>): Promise<void>;
  /** Refuses waiting and new requests; those in progress finish on their own. */
  stop(): void;
  metrics: Metric[];
}

type Ending = 'left' | 'too_late' | 'stopping';

/** Whether a request is still sending its body, waits for its turn, or is in progress. */
interface Stay {
  at: 'door' | 'queue' | 'work';
  /** Aborted with an {@link Ending} when the request must stop waiting. */
  waiting: AbortController;
}

/**
 * Limits how many of an account's requests are in progress; the rest wait in the account's own queue, first
 * come, first served. Accounts take turns, a few requests at a time. Processes that serve the same account
 * share its limits (docs/decisions/fair-admission.md).
 * @param now milliseconds of a monotonic clock
 */
export function createAdmission(
  { accountConcurrency, maxWaitMs, maxTurnMs, maxStartMs }: AdmissionOptions,
  now: () => number = () => performance.now(),
): Admission {
  /** In how many other processes each account is active. */
  let elsewhere = new Map<string, number>();
  const countProcesses = (account: string) => 1 + (elsewhere.get(account) ?? 0);
  const places = new Turns({
    places: Number.POSITIVE_INFINITY,
    each: (account) => Math.ceil(accountConcurrency / countProcesses(account)),
  });
  const requests = paced(Math.max(accountConcurrency, REQUESTS), REQUESTS_BESIDE_OTHERS);
  const starts = paced(STARTS, STARTS_BESIDE_OTHERS);
  /** When each account last sent a request, least recent first. */
  const active = new Map<string, number>();
  /** All requests in this process, by account. */
  const present = new Map<string, Set<Stay>>();
  const refusals = createRefusals(accountConcurrency);
  const metrics = createMetrics(Object.keys(refusals), () =>
    [...present.values()].flatMap((stays) => [...stays]),
  );
  let stopping = false;

  function arrive({ partnerId, mode }: Tenant): Visit {
    const account = `${partnerId}/${mode}`;
    const stays = present.get(account) ?? new Set();
    if (stopping) throw refusal('stopping');
    if (stays.size >= accountConcurrency + QUEUE_LENGTH) throw refusal('queue_full');
    const stay: Stay = { at: 'door', waiting: new AbortController() };
    present.set(account, stays.add(stay));
    const held: ((moreRestMs?: number) => void)[] = [];
    let passTurn = () => {};

    return {
      async begin(startsWorkflow) {
        const { signal } = stay.waiting;
        const patience = setTimeout(() => stay.waiting.abort('too_late'), maxWaitMs);
        stay.at = 'queue';
        try {
          const leavePlace = await places.take(account, signal);
          held.push(() => leavePlace());
          if (partnerId !== STRANGERS) countAsActive(account);
          const giveBack = await (startsWorkflow ? starts : requests).take(account, signal);
          const timer = setTimeout(giveBack, startsWorkflow ? maxStartMs : maxTurnMs);
          held.push(
            (moreRestMs) => giveBack(hasCompany(account) ? moreRestMs : 0),
            () => clearTimeout(timer),
          );
          passTurn = () => giveBack();
        } catch (error) {
          if (!signal.aborted) throw error;
          const ending: Ending = signal.reason;
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
      end(transferred) {
        const restMs = transferred === undefined ? 0 : restAfter(transferred);
        for (const giveBack of held) giveBack(restMs);
        stays.delete(stay);
        if (stays.size === 0) present.delete(account);
      },
    };
  }

  /**
   * Turns that an account can use fully while it is alone, in all processes. If others are active, its
   * processes share `besideOthers` turns: with more processes than turns, each takes one turn and then rests.
   */
  function paced(turns: number, besideOthers: number): Turns {
    const share = (account: string) => Math.max(1, Math.floor(besideOthers / countProcesses(account)));
    return new Turns(
      {
        places: turns,
        each: (account) =>
          hasCompany(account) ? share(account) : Math.ceil(turns / countProcesses(account)),
        rest: (account) =>
          hasCompany(account) ? (share(account) * countProcesses(account)) / besideOthers - 1 : 0,
      },
      now,
    );
  }

  function hasCompany(account: string): boolean {
    if (account.startsWith(STRANGERS)) return true;
    return active.size > 1 || elsewhere.size > 1 || (elsewhere.size === 1 && !elsewhere.has(account));
  }

  function countAsActive(account: string): void {
    active.delete(account);
    active.set(account, now());
    forgetInactive();
  }

  function forgetInactive(): void {
    const nowMs = now();
    for (const [other, askedMs] of active) {
      if (askedMs > nowMs - BESIDE_MS) break;
      active.delete(other);
    }
  }

  function refusal(reason: keyof typeof refusals): ApiError {
    metrics.refused.inc({ reason });
    const { code, ...detail } = refusals[reason];
    return new ApiError(code, detail);
  }

  return {
    arrive,
    async exchange(share) {
      forgetInactive();
      const others = active.size === 0 ? [] : await share([...active.keys()].slice(-MAX_SHARED_ACCOUNTS));
      const counts = new Map<string, number>();
      for (const account of others.flat()) counts.set(account, (counts.get(account) ?? 0) + 1);
      elsewhere = counts;
    },
    stop() {
      stopping = true;
      for (const stays of present.values()) for (const { waiting } of stays) waiting.abort('stopping');
    },
    metrics: Object.values(metrics),
  };
}

function restAfter({ bodyBytes, responseBytes }: Transferred): number {
  const restMs = (bytes: number, large: typeof LARGE_BODY) =>
    bytes < large.fromBytes ? 0 : bytes / large.bytesPerMs;
  return restMs(bodyBytes, LARGE_BODY) + restMs(responseBytes, LARGE_RESPONSE);
}

function createRefusals(accountConcurrency: number) {
  return {
    queue_full: {
      code: 'rate_limited',
      message:
        `This account already has ${accountConcurrency} requests in progress in this mode, and ${QUEUE_LENGTH} more ` +
        'waiting. Retry after the number of seconds in Retry-After, with the same Idempotency-Key, and send fewer at once.',
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
      message:
        'The server is restarting and did not start this request. Retry with the same Idempotency-Key.',
      retryAfterSeconds: 1,
    },
  } as const;
}

function createMetrics(reasons: readonly string[], stays: () => Stay[]) {
  const refused = new Counter({
    name: 'admission_requests_refused_total',
    help: 'Requests refused before they were started, by reason',
    labelNames: ['reason'],
    registers: [],
  });
  // So that the first refusal shows as an increase.
  for (const reason of reasons) refused.inc({ reason }, 0);
  const gauge = (name: string, help: string, at: Stay['at']) =>
    new Gauge({
      name,
      help: `${help}, across all accounts`,
      registers: [],
      collect() {
        this.set(stays().filter((stay) => stay.at === at).length);
      },
    });
  return {
    atWork: gauge('admission_requests_at_work', 'Requests in progress', 'work'),
    waiting: gauge('admission_requests_waiting', 'Requests waiting for their turn', 'queue'),
    refused,
  };
}
