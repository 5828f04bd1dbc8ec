import { setTimeout } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import type { Logger } from 'pino';
import { Counter, Histogram, type Metric } from 'prom-client';
import type { Config } from '../platform/config/service.ts';
import type { Orm } from '../platform/db/orm.ts';
import { ASYNCHRONOUS_COMMIT, autocommitStatement } from '../platform/db/sql.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { Turns } from '../platform/process/turns.ts';
import { asService, currentWork, untilAborted } from '../platform/process/work-context.ts';
import { TurnMissed } from './card-network.ts';

/** What a request to the card network is for, the most urgent first. */
export type TurnClass = 'authorization' | 'reveal' | 'operation' | 'event' | 'reconciliation';

/** The rate of requests to the card network, which all processes share (docs/decisions/request-budget.md). */
export interface RequestBudget {
  /**
   * Waits until the next request may be sent. Each request takes a turn of its own, so each page of a list
   * does.
   * @param signal gives up the wait
   * @param requests how many, at most {@link MAX_TOGETHER}: they have their turns together; one if left out
   * @throws TurnMissed if the turn does not come in the time that this class has
   */
  takeTurn(turn: TurnClass, signal: AbortSignal | null, requests?: number): Promise<void>;
  /** The network answered 429: no process sends anything for so long, at most 60 s. Does not throw. */
  noteRetryAfter(waitMs: number): Promise<void>;
  metrics: Metric[];
}

/** For a network that has no limit. */
export const UNLIMITED: RequestBudget = {
  takeTurn: async () => {},
  noteRetryAfter: async () => {},
  metrics: [],
};

interface ClassTerms {
  /**
   * How long a turn is waited for. An authorization has 2 s in all, an attempt of an operation a minute for a few
   * requests.
   */
  maxWaitMs: number;
  /** The part of the bucket that it leaves to the classes before it. */
  reserve: number;
  /** The part of the rate that it gets, however much the others send. */
  promised: number;
  /** Whether somebody waits at a till: if the database is too slow to give turns, it is sent without one. */
  isUrgent: boolean;
}

const CLASSES: Record<TurnClass, ClassTerms> = {
  authorization: { maxWaitMs: 1_000, reserve: 0, promised: 1 / 5, isUrgent: true },
  reveal: { maxWaitMs: 2_000, reserve: 0.1, promised: 1 / 5, isUrgent: true },
  operation: { maxWaitMs: 4_000, reserve: 0.3, promised: 1 / 5, isUrgent: false },
  event: { maxWaitMs: 4_000, reserve: 0.5, promised: 1 / 10, isUrgent: false },
  // It is in no hurry, and outlasts a pause that the network asks for.
  reconciliation: { maxWaitMs: 120_000, reserve: 0.7, promised: 1 / 20, isUrgent: false },
};

/** How many requests may have their turns together. */
const MAX_TOGETHER = 3;
const MAX_PAUSE_MS = 60_000;
/** Nobody asks again sooner than this. */
const MIN_WAIT_MS = 5;
/** How long an urgent request waits for the database. */
const MAX_DATABASE_WAIT_MS = 250;

interface RequestBudgetOptions {
  orm: Orm;
  /** The row's name in `request_budget`. */
  network: string;
  perSecond: number;
  logger: Logger;
}

/**
 * Opens the budget of the network that CARD_NETWORK names. A network that runs in our own processes has no
 * limit.
 */
export function openRequestBudget(
  { cardNetwork, increase, lithic }: Pick<Config, 'cardNetwork' | 'increase' | 'lithic'>,
  orm: Orm,
  logger: Logger,
): RequestBudget {
  const issuer = increase ?? lithic;
  if (issuer === null) return UNLIMITED;
  return createRequestBudget({ orm, network: cardNetwork, perSecond: issuer.requestsPerSecond, logger });
}

export function createRequestBudget({
  orm,
  network,
  perSecond,
  logger,
}: RequestBudgetOptions): RequestBudget {
  // Half a second's worth, so that no second has many more requests than the rate.
  const size = Math.max(4, perSecond / 2);
  const everyMs = 1_000 / perSecond;
  // A promised turn of each class on top of an empty bucket, and as much again for a rate that has changed.
  const maxDebtMs = 2 * (size + Object.keys(CLASSES).length) * everyMs;
  const waits = new Histogram({
    name: 'card_network_turn_wait_seconds',
    help: 'How long requests to the card network waited for their turn in its rate, by class and outcome',
    labelNames: ['class', 'outcome'],
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 120],
    registers: [],
  });
  const pauses = new Counter({
    name: 'card_network_rate_limited_total',
    help: 'How often the card network answered that it gets too many requests',
    registers: [],
  });

  // In each class, only a few ask the database at a time, and accounts take turns at that.
  const places = Math.max(4, Math.ceil(perSecond / 100));
  const line = () => new Turns({ places, each: Math.ceil(places / 2) });
  const lines: Record<TurnClass, Turns> = {
    authorization: line(),
    reveal: line(),
    operation: line(),
    event: line(),
    reconciliation: line(),
  };

  /**
   * Asks the database for a turn.
   * @returns how long to wait before asking again; 0 if the request may be sent
   */
  async function ask(turn: TurnClass, requests: number): Promise<number> {
    const { reserve, promised } = CLASSES[turn];
    const slackMs = (size - 1) * (1 - reserve) * everyMs;
    // Not in the turns of its account: they may all be taken, and the statement is short.
    const take = () =>
      asService('request budget', () =>
        TAKE[turn](orm, {
          network,
          spentMs: requests * everyMs,
          slackMs,
          maxDebtMs,
          promisedMs: (requests * everyMs) / promised,
          maxPromisedMs: (MAX_TOGETHER * everyMs) / promised,
        }),
      );
    let [row] = await take();
    if (row === undefined) {
      // The first request to this network.
      await asService('request budget', () => addNetwork(orm, { network }));
      [row] = await take();
    }
    if (row === undefined) throw new Error(`request_budget has no row "${network}"`);
    return row.is_taken ? 0 : Math.max(MIN_WAIT_MS, Math.ceil(row.wait_ms));
  }

  /** @returns how long to wait, or `unbudgeted` if the database does not say so in time */
  async function askUrgently(turn: TurnClass, requests: number): Promise<number | 'unbudgeted'> {
    const answered = new AbortController();
    const asked = ask(turn, requests).catch((error: unknown) => {
      logger.warn({ error: describeError(error) }, 'could not ask for a turn at the card network');
      return 'unbudgeted' as const;
    });
    const late = setTimeout(MAX_DATABASE_WAIT_MS, 'unbudgeted' as const, answered).catch(
      () => 'unbudgeted' as const,
    );
    const first = await Promise.race([asked, late]);
    answered.abort();
    return first;
  }

  async function wait(
    turn: TurnClass,
    requests: number,
    untilMs: number,
    signal: AbortSignal,
  ): Promise<string> {
    const { account, part } = currentWork();
    const leave = await lines[turn].take(account ?? part, signal);
    try {
      for (;;) {
        const waitMs = CLASSES[turn].isUrgent ? await askUrgently(turn, requests) : await ask(turn, requests);
        if (waitMs === 'unbudgeted') return waitMs;
        if (waitMs === 0) return 'taken';
        if (performance.now() + waitMs > untilMs) throw new TurnMissed();
        await setTimeout(waitMs, undefined, { signal });
      }
    } finally {
      leave();
    }
  }

  return {
    metrics: [waits, pauses],

    async takeTurn(turn, signal, requests = 1) {
      const { maxWaitMs } = CLASSES[turn];
      const fromMs = performance.now();
      const limit = AbortSignal.timeout(maxWaitMs);
      const givenUp = signal === null ? limit : AbortSignal.any([limit, signal]);
      let outcome = 'given_up';
      try {
        outcome = await untilAborted(givenUp, () => wait(turn, requests, fromMs + maxWaitMs, givenUp));
      } catch (error) {
        if (error instanceof TurnMissed) throw error;
        throw new TurnMissed({ cause: error });
      } finally {
        waits.observe({ class: turn, outcome }, (performance.now() - fromMs) / 1_000);
      }
    },

    async noteRetryAfter(waitMs) {
      pauses.inc();
      const pauseMs = Math.min(Math.max(waitMs, 0), MAX_PAUSE_MS);
      try {
        await asService('request budget', () => pause(orm, { network, pauseMs }));
      } catch (error) {
        logger.warn(
          { error: describeError(error) },
          'could not tell the other processes that the card network asks for a pause',
        );
      }
    },
  };
}

interface Turn {
  network: string;
  /** How much longer it takes until the bucket is full again. */
  spentMs: number;
  /** How long before the bucket is full the class finds a token in it. */
  slackMs: number;
  /** How long it takes at most until the bucket is full again. */
  maxDebtMs: number;
  /** How long until the class is promised its next turn, and how long that is at most. */
  promisedMs: number;
  maxPromisedMs: number;
}

const ms = (count: number | RawBuilder<number>) => sql`${count}::float8 * interval '1 millisecond'`;

/**
 * A stored time; now if it is further ahead than it was ever set, because the database's clock has been set
 * back since. Without that, nothing would be sent until then.
 */
const stored = (at: string, maxAheadMs: number | RawBuilder<number>) => sql<Date>`
  CASE WHEN ${sql.ref(at)} <= clock_timestamp() + ${ms(maxAheadMs)} THEN ${sql.ref(at)}
    ELSE clock_timestamp() END`;

/**
 * Takes a turn if there is one. The wait is as the row was before, so whoever waits asks again. A crash of
 * PostgreSQL may lose a turn that was taken.
 */
const taking = (turn: TurnClass) =>
  autocommitStatement((_, { network, spentMs, slackMs, maxDebtMs, promisedMs, maxPromisedMs }: Turn) => {
    const fullAt = stored('full_at', maxDebtMs);
    const promisedAt = stored(`${turn}_promised_at`, maxPromisedMs);
    const pausedUntil = stored('paused_until', sql.lit(MAX_PAUSE_MS));
    return sql<{ is_taken: boolean; wait_ms: number }>`
      WITH ${ASYNCHRONOUS_COMMIT}, taken AS (
        UPDATE request_budget SET
          full_at = greatest(${fullAt}, clock_timestamp()) + ${ms(spentMs)},
          ${sql.ref(`${turn}_promised_at`)} = clock_timestamp() + ${ms(promisedMs)}
        FROM asynchronous_commit
        WHERE network = ${network} AND ${pausedUntil} <= clock_timestamp()
          AND (${fullAt} <= clock_timestamp() + ${ms(slackMs)} OR ${promisedAt} <= clock_timestamp())
        RETURNING network
      )
      SELECT EXISTS (SELECT FROM taken) AS is_taken,
        (1000 * extract(epoch FROM greatest(${pausedUntil}, least(${fullAt} - ${ms(slackMs)}, ${promisedAt}))
          - clock_timestamp()))::float8 AS wait_ms
      FROM request_budget WHERE network = ${network}`;
  });

const TAKE = {
  authorization: taking('authorization'),
  reveal: taking('reveal'),
  operation: taking('operation'),
  event: taking('event'),
  reconciliation: taking('reconciliation'),
};

const addNetwork = autocommitStatement(
  (_, { network }: { network: string }) =>
    sql`INSERT INTO request_budget (network) VALUES (${network}) ON CONFLICT DO NOTHING`,
);

const pause = autocommitStatement((db, { network, pauseMs }: { network: string; pauseMs: number }) =>
  db
    .updateTable('request_budget')
    .set({
      paused_until: sql`greatest(${stored('paused_until', sql.lit(MAX_PAUSE_MS))},
        clock_timestamp() + ${ms(pauseMs)})`,
    })
    .where('network', '=', network),
);
