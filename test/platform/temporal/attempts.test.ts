import assert from 'node:assert/strict';
import { mock } from 'node:test';
import {
  ApplicationFailure,
  CancelledFailure,
  defaultPayloadConverter,
  type Headers,
} from '@temporalio/common';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import type pg from 'pg';
import { pino } from 'pino';
import { type Orm, openOrm } from '../../../platform/db/orm.ts';
import { query } from '../../../platform/db/sql.ts';
import { transaction } from '../../../platform/db/transaction.ts';
import { currentWork } from '../../../platform/process/work-context.ts';
import { attemptInterceptors } from '../../../platform/temporal/attempts.ts';
import { EncryptionCodec } from '../../../platform/temporal/encryption-codec.ts';
import { connectTo, createTestDatabase, ownerUrlOf } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';

type Context = Parameters<ActivityInterceptorsFactory>[0];

/** Runs an effect as the SDK runs an activity: through the interceptors, outermost first. */
async function attempt<T>(
  effect: () => Promise<T>,
  options: {
    startToCloseTimeoutMs?: number;
    isLocal?: boolean;
    cancelled?: AbortSignal;
    account?: unknown;
  } = {},
): Promise<T> {
  const context = {
    info: {
      startToCloseTimeoutMs: options.startToCloseTimeoutMs ?? 60_000,
      isLocal: options.isLocal ?? false,
    },
    cancellationSignal: options.cancelled ?? new AbortController().signal,
  } as Context;
  const headers: Headers =
    options.account === undefined ? {} : { work: defaultPayloadConverter.toPayload(options.account) };
  const run = attemptInterceptors(pino({ level: 'silent' }), new EncryptionCodec(null))
    .map((factory) => factory(context).inbound)
    .reduceRight<(input: { args: unknown[]; headers: Headers }) => Promise<unknown>>(
      (next, interceptor) => (input) => interceptor?.execute?.(input, next) ?? next(input),
      effect,
    );
  return (await run({ args: [], headers })) as T;
}

describe('an activity attempt', () => {
  let orm: Orm;
  /** Holds a lock that the attempts' work waits for. */
  let holder: pg.Client;
  before(async () => {
    const databaseUrl = await createTestDatabase();
    orm = await openOrm({ databaseUrl, poolSize: 1 });
    holder = await connectTo(ownerUrlOf(databaseUrl));
    await holder.query('SELECT pg_advisory_lock(1)');
  });
  after(async () => {
    await orm.close();
    await holder.end();
  });

  const steps: string[] = [];
  beforeEach(() => {
    steps.length = 0;
  });
  const longWork = async () => {
    await transaction(orm, async (tx) => {
      await query(tx, 'SELECT pg_advisory_xact_lock(1)');
      steps.push('committed');
    }).catch(() => steps.push('the transaction is gone'));
    await query(orm.em.fork(), 'SELECT 1');
    steps.push('went on');
  };
  /** Asks on the only connection, which must not be the attempt's any more. */
  const assertStopped = async () => {
    await query(orm.em.fork(), 'SELECT 1');
    assert.deepEqual(steps, ['the transaction is gone']);
  };

  it('frees its connection and does no further step once Temporal has given it up', async () => {
    const cancellation = new AbortController();
    const timedOut = new CancelledFailure('TIMED_OUT');
    const attempted = assert.rejects(
      attempt(longWork, { cancelled: cancellation.signal }),
      (error) => error === timedOut,
    );
    await until('it waits', async () => {
      const waiting = `SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
      return (await holder.query(waiting)).rowCount === 1;
    });
    cancellation.abort(timedOut);
    await attempted;
    await assertStopped();
  });

  const isGivenUp = (error: unknown) =>
    error instanceof ApplicationFailure && error.type === 'GivenUp' && !error.nonRetryable;

  it('ends when its own time is up if Temporal has lost sight of it', async () => {
    await assert.rejects(attempt(longWork, { startToCloseTimeoutMs: 1 }), isGivenUp);
    await assertStopped();
  });

  it('ends by its own time alone if it is local', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const attempted = attempt(longWork, { isLocal: true, startToCloseTimeoutMs: Number.POSITIVE_INFINITY });
    mock.timers.tick(8_500);
    mock.timers.reset();
    await assert.rejects(attempted, isGivenUp);
    await assertStopped();
  });

  it("uses its account's turns for connections", async () => {
    const account = async () => currentWork().account;
    assert.equal(await attempt(account, { account: { partnerId: 'prt_1', mode: 'live' } }), 'prt_1/live');
    for (const none of [undefined, {}, null]) assert.equal(await attempt(account, { account: none }), null);
  });
});
