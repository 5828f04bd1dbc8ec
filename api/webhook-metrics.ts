import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Gauge, type Metric } from 'prom-client';
import { timeOf } from '../db/new-id.ts';
import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';
import { describeError } from '../domain/describe-error.ts';

/** More than these are not counted: how many more changes nothing for whoever reads it. */
const MOST_COUNTED = 10_000;
/** The other metrics do not wait for PostgreSQL longer than that. */
const READ_TIMEOUT_MS = 2_000;

/** What of the delivery of events waits, for how many accounts and how long: of the whole database, whichever API process is asked. */
export function createWebhookMetrics(orm: Orm, logger: Logger): Metric[] {
  let reading: Promise<Waiting[]> | undefined;
  // Every gauge is asked in the same moment.
  const readOnce = () => {
    reading ??= readWaiting(orm).finally(() => {
      reading = undefined;
    });
    const tooLate = sleep(READ_TIMEOUT_MS, undefined, { ref: false }).then(() => {
      throw new Error(`PostgreSQL did not answer within ${READ_TIMEOUT_MS} ms`);
    });
    return Promise.race([reading, tooLate]);
  };
  const gauge = (name: string, help: string, measure: (waiting: Waiting) => number | undefined) =>
    new Gauge({
      name,
      help: `${help}, by what they wait for`,
      labelNames: ['for'],
      registers: [],
      async collect() {
        this.reset();
        try {
          for (const waiting of await readOnce()) {
            const value = measure(waiting);
            if (value !== undefined) this.set({ for: waiting.for }, value);
          }
        } catch (error) {
          logger.warn({ error: describeError(error) }, 'what waits to be delivered could not be counted');
        }
      },
    });
  return [
    gauge('webhook_events_waiting', `Events that wait, up to ${MOST_COUNTED}`, ({ events }) => events),
    gauge('webhook_accounts_waiting', 'Accounts whose events wait', ({ accounts }) => accounts),
    gauge(
      'webhook_longest_wait_seconds',
      'How long the first of them has been due',
      ({ for: what, due_at, first_id }) => {
        // A workflow that has yet to hear is late for no attempt.
        if (what === 'workflow') return undefined;
        const dueAt = [due_at, first_id && timeOf(first_id)].filter((at) => at !== null);
        const earliestMs = Math.min(...dueAt.map((at) => new Date(at).getTime()), Date.now());
        return (Date.now() - earliestMs) / 1_000;
      },
    ),
  ];
}

interface Waiting {
  for: 'relay' | 'handover' | 'workflow';
  events: number;
  accounts: number;
  /** Of those that were attempted before. */
  due_at: string | null;
  /** Of those that were not: they are due from their birth on. */
  first_id: string | null;
}

const read = (what: Waiting['for'], where: string, dueAt: string) => `
  SELECT '${what}' AS for, count(*)::int AS events, count(DISTINCT (partner_id, mode))::int AS accounts,
    min(${dueAt}) AS due_at, min(event_id) FILTER (WHERE ${dueAt} IS NULL AND status = 'pending') AS first_id
  FROM (SELECT partner_id, mode, event_id, status, next_attempt_at FROM delivery WHERE ${where} LIMIT ${MOST_COUNTED}) d`;

const readWaiting = (orm: Orm): Promise<Waiting[]> => query<Waiting>(orm.em.fork(), READ);

// Each by a partial index.
const READ = [
  read('relay', `status = 'pending'`, 'next_attempt_at'),
  read('handover', `status = 'retrying' AND next_attempt_at < now()`, 'next_attempt_at'),
  read('workflow', `workflow = 'untold' AND status <> 'pending'`, 'NULL::timestamptz'),
].join(' UNION ALL ');
