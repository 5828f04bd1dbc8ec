import { Counter, Gauge, type Metric } from 'prom-client';
import type { Tenant } from '../db/tenant.ts';
import { ApiError } from '../domain/api-error.ts';

/** How many requests of an account may be here beyond those at work. */
const QUEUE_LENGTH = 200;

export interface AdmissionOptions {
  /** How many requests of an account, which is a partner in one mode, are at work at once. */
  accountConcurrency: number;
  /** How long a request may wait before its work begins. */
  longestWaitMs: number;
}

/** One request on its way through. */
export interface Visit {
  /**
   * Waits until it is the request's turn to work. Nothing of it may have begun before.
   * @param gone says that nobody waits for the answer; the request then leaves the queue.
   * @returns whether there is somebody to answer
   * @throws ApiError `unavailable` where that took too long, or the process stops
   */
  begin(gone: AbortSignal): Promise<boolean>;
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

interface Waiter {
  settle(outcome: 'turn' | 'gone' | 'too_late' | 'stopping'): void;
}

interface Account {
  /** All its requests in this process: those whose body is still coming, those waiting, those at work. */
  present: number;
  atWork: number;
  /** In the order of arrival. */
  waiting: Set<Waiter>;
}

/**
 * Lets each account have so many requests at work in this process; the rest wait in the account's own queue, first come
 * first served (docs/decisions/fair-admission.md).
 */
export function createAdmission({ accountConcurrency, longestWaitMs }: AdmissionOptions): Admission {
  const accounts = new Map<string, Account>();
  let stopping = false;
  const metrics = createMetrics(accounts);

  function arrive({ partnerId, mode }: Tenant): Visit {
    if (stopping) throw refusal('stopping');
    const id = `${partnerId}/${mode}`;
    const account = accounts.get(id) ?? { present: 0, atWork: 0, waiting: new Set() };
    if (account.present >= accountConcurrency + QUEUE_LENGTH) throw refusal('queue_full');
    account.present += 1;
    accounts.set(id, account);
    let working = false;

    async function begin(gone: AbortSignal): Promise<boolean> {
      if (gone.aborted) return false;
      if (stopping) throw refusal('stopping');
      if (account.atWork < accountConcurrency) {
        account.atWork += 1;
      } else {
        const outcome = await wait(account, gone);
        if (outcome === 'gone') return false;
        if (outcome !== 'turn') throw refusal(outcome);
      }
      working = true;
      return true;
    }

    function end(): void {
      account.present -= 1;
      if (account.present === 0) accounts.delete(id);
      if (!working) return;
      const [next] = account.waiting;
      // The place goes on to the next one without becoming free: who comes now stands behind it.
      if (next === undefined) account.atWork -= 1;
      else next.settle('turn');
    }

    return { begin, end };
  }

  function wait(account: Account, gone: AbortSignal): Promise<'turn' | 'gone' | 'too_late' | 'stopping'> {
    return new Promise((resolve) => {
      const leave = () => waiter.settle('gone');
      const patience = setTimeout(() => waiter.settle('too_late'), longestWaitMs);
      const waiter: Waiter = {
        settle(outcome) {
          account.waiting.delete(waiter);
          clearTimeout(patience);
          gone.removeEventListener('abort', leave);
          resolve(outcome);
        },
      };
      gone.addEventListener('abort', leave);
      account.waiting.add(waiter);
    });
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
      for (const { waiting } of accounts.values()) for (const waiter of waiting) waiter.settle('stopping');
    },
    metrics: Object.values(metrics),
  };
}

const REFUSALS = {
  queue_full: {
    code: 'rate_limited',
    message:
      'This account has as many requests at work and waiting as it may have. Retry after the time in Retry-After, ' +
      'with fewer at a time.',
    retryAfterSeconds: 1,
  },
  too_late: {
    code: 'unavailable',
    message:
      "The account's other requests took so long that this one did not begin. Retry it with the same " +
      'Idempotency-Key, with fewer at a time.',
    retryAfterSeconds: 1,
  },
  stopping: {
    code: 'unavailable',
    message: 'This process is stopping, and the request did not begin. Retry with the same Idempotency-Key.',
    retryAfterSeconds: 1,
  },
} as const;

function createMetrics(accounts: Map<string, Account>) {
  const sum = (of: (account: Account) => number) =>
    [...accounts.values()].reduce((total, account) => total + of(account), 0);
  return {
    atWork: new Gauge({
      name: 'admission_requests_at_work',
      help: 'Requests of all accounts that are at work',
      registers: [],
      collect() {
        this.set(sum(({ atWork }) => atWork));
      },
    }),
    waiting: new Gauge({
      name: 'admission_requests_waiting',
      help: "Requests of all accounts that wait in their account's queue",
      registers: [],
      collect() {
        this.set(sum(({ waiting }) => waiting.size));
      },
    }),
    refused: new Counter({
      name: 'admission_requests_refused_total',
      help: 'Requests that were refused before their work began, by reason',
      labelNames: ['reason'],
      registers: [],
    }),
  };
}
