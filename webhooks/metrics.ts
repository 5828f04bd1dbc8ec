import { type RawBuilder, sql } from 'kysely';
import { Gauge, Histogram, type Metric } from 'prom-client';
import { readIdTime } from '../platform/crypto/new-id.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import type { Measured } from '../platform/monitoring/measured-gauges.ts';

/** Counting stops here: for an operator, more makes no difference. */
const MAX_COUNTED = 10_000;

/** How many events are waiting for delivery, of how many accounts, and for how long. */
export function webhooksMeasured(orm: Orm): Measured<Waiting[]> {
  const gauge = (name: string, help: string, pick: (waiting: Waiting) => number | undefined) => ({
    name,
    help: `${help}, by what they wait for`,
    labels: ['for'],
    samples: (read: Waiting[]) =>
      read.flatMap((waiting): [string[], number][] => {
        const value = pick(waiting);
        return value === undefined ? [] : [[[waiting.for], value]];
      }),
  });
  return {
    name: 'webhooks',
    source: { everyMs: 5_000, measure: () => countWaiting(orm.em.fork(), {}) },
    gauges: [
      gauge(
        'webhook_events_waiting',
        `Events that are waiting, up to ${MAX_COUNTED}`,
        ({ events }) => events,
      ),
      gauge('webhook_accounts_waiting', 'Accounts with waiting events', ({ accounts }) => accounts),
      gauge('webhook_longest_wait_seconds', 'How long the oldest of them has been due', longestWaitSeconds),
    ],
  };
}

interface Waiting {
  for: 'relay' | 'handover' | 'workflow';
  events: number;
  accounts: number;
  /** The earliest due time among events that were attempted before. */
  due_at: string | null;
  /** The first event that was never attempted, which has been due since it was created. */
  first_id: string | null;
}

function longestWaitSeconds({ for: what, due_at, first_id }: Waiting): number | undefined {
  // An event whose workflow has to be told of an attempt is not late for one.
  if (what === 'workflow') return undefined;
  const dueAt = [due_at, first_id && readIdTime(first_id)].filter((at) => at !== null);
  const earliestMs = Math.min(...dueAt.map((at) => new Date(at).getTime()), Date.now());
  return (Date.now() - earliestMs) / 1_000;
}

const waiting = (what: Waiting['for'], where: RawBuilder<unknown>, dueAt: RawBuilder<unknown>) => sql`
  SELECT ${sql.lit(what)} AS for, count(*)::int AS events,
    count(DISTINCT (partner_id, mode))::int AS accounts,
    min(${dueAt}) AS due_at, min(event_id) FILTER (WHERE ${dueAt} IS NULL AND status = 'pending') AS first_id
  FROM (SELECT partner_id, mode, event_id, status, next_attempt_at FROM delivery
    WHERE ${where} LIMIT ${sql.lit(MAX_COUNTED)}) d`;

const DUE_AT = sql.ref('next_attempt_at');

// Written out, so that a partial index counts each part.
const countWaiting = readStatement(
  () => sql<Waiting>`
    ${waiting('relay', sql`status = 'pending'`, DUE_AT)}
    UNION ALL ${waiting('handover', sql`status = 'retrying' AND next_attempt_at < now()`, DUE_AT)}
    UNION ALL ${waiting(
      'workflow',
      sql`workflow = 'untold'
      AND status <> 'pending'`,
      sql`NULL::timestamptz`,
    )}`,
  { acrossTenants: 'measurement' },
);

interface MadeAttempt {
  durationMs: number;
  httpStatus: number | null;
  /** A code of DeliveryError, or the HTTP status; null if the event was delivered. */
  error: string | null;
}

interface RelayMetrics {
  observe(attempt: MadeAttempt): void;
  all: Metric[];
}

/** The metrics of this process's relay. None of them names an account. */
export function createRelayMetrics(relay: {
  inFlight(): number;
  endpoints(): { full: number; slowed: number };
}): RelayMetrics {
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [],
      collect() {
        this.set(read());
      },
    });
  const durations = new Histogram({
    name: 'webhook_attempt_duration_seconds',
    help: "Time until a receiver's status line, or until the attempt failed, by outcome",
    labelNames: ['outcome'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
    registers: [],
  });
  return {
    observe: (attempt) => durations.observe({ outcome: attemptOutcome(attempt) }, attempt.durationMs / 1_000),
    all: [
      durations,
      gauge('webhook_events_in_flight', 'Events that this process is sending or recording', relay.inFlight),
      gauge(
        'webhook_endpoints_full',
        'Endpoints with as many attempts in flight as they may have from this process: their other events wait',
        () => relay.endpoints().full,
      ),
      gauge(
        'webhook_endpoints_slowed',
        'Endpoints that may have fewer attempts in flight than they began with, since attempts failed',
        () => relay.endpoints().slowed,
      ),
    ],
  };
}

/** One of some twenty values, so that the metric has few series. */
function attemptOutcome({ error, httpStatus }: MadeAttempt): string {
  if (error === null) return 'delivered';
  return httpStatus === null ? error : `http_${Math.floor(httpStatus / 100)}xx`;
}
