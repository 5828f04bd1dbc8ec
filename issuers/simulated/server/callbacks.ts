import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Logger } from 'pino';
import { type Dispatcher, request } from 'undici';
import type { Orm } from '../../../platform/db/orm.ts';
import { autocommitStatement } from '../../../platform/db/sql.ts';
import { SIGNATURE_HEADER, signBody } from '../signature.ts';
import type { NetworkCallback } from '../wire.ts';

const MAX_ATTEMPTS = 5;

interface CallbackOptions {
  orm: Orm;
  callbackUrl: string;
  callbackSecret: string;
  agent: Dispatcher;
  logger: Logger;
}

/** Shorter than from an operation to its first callback, so that a look finds each before it is due. */
const LOOK_EVERY_MS = 1_000;

/** Sends callbacks as they become due, until it is stopped. */
export async function sendCallbacks(options: CallbackOptions, stopped: AbortSignal): Promise<void> {
  while (!stopped.aborted) {
    try {
      const [next] = await nextDue(options.orm, {});
      const waitMs = next?.wait_ms ?? LOOK_EVERY_MS;
      if (waitMs > 0 || (await sendDueCallbacks(options)) === 0)
        await pause(Math.min(Math.max(waitMs, 10), LOOK_EVERY_MS), stopped);
    } catch (error) {
      options.logger.error({ err: error }, 'simulated network: cannot send callbacks; check PostgreSQL');
      await pause(1_000, stopped);
    }
  }
}

const nextDue = autocommitStatement(
  () => sql<{ wait_ms: number | null }>`
    SELECT ceil(extract(epoch FROM min(due_at) - clock_timestamp()) * 1000)::float8 AS wait_ms
    FROM simulated_network.callback`,
);

async function pause(ms: number, stopped: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: stopped }).catch((error) => {
    if (!stopped.aborted) throw error;
  });
}

/**
 * Sends the callbacks that are due, at most 20. If the receiver does not accept one, it is sent again after
 * 1, 2, 4 and 8 s and then dropped, because a look-up finds the outcome anyway. Several processes may do this
 * at once; if a sender dies, its callback is sent again after 10 s.
 * @returns how many were due
 */
async function sendDueCallbacks(options: CallbackOptions): Promise<number> {
  const due = await takeDue(options.orm, {});
  await Promise.all(due.map((callback) => sendCallback(options, callback)));
  return due.length;
}

const takeDue = autocommitStatement((db) =>
  db
    .with('due', (cte) =>
      cte
        .selectFrom('simulated_network.callback')
        .select('id')
        .where('due_at', '<=', sql<string>`clock_timestamp()`)
        .orderBy('due_at')
        .limit(sql.lit(20))
        .forUpdate()
        .skipLocked(),
    )
    .updateTable('simulated_network.callback as c')
    .from(['due', 'simulated_network.operation as o'])
    .set({
      attempts: sql<number>`c.attempts + 1`,
      due_at: sql<string>`clock_timestamp() + interval '10 seconds'`,
    })
    .whereRef('c.id', '=', 'due.id')
    .whereRef('o.token', '=', 'c.token')
    .returning(['c.id', 'c.token', 'o.kind as type', 'c.attempts'])
    .$narrowType<{ type: NetworkCallback['type'] }>(),
);

type DueCallback = Awaited<ReturnType<typeof takeDue>>[number];

async function sendCallback(options: CallbackOptions, callback: DueCallback): Promise<void> {
  const { id, token, type, attempts } = callback;
  const refusal = await post(options, { token, type });
  const isLast = refusal === null || attempts >= MAX_ATTEMPTS;
  await (isLast ? remove : putOff)(options.orm, { id });
  if (refusal === null || !isLast) return;
  options.logger.warn(
    { token, refusal },
    'simulated network: dropped a callback; polling will find the outcome',
  );
}

const remove = autocommitStatement((db, { id }: { id: string }) =>
  db.deleteFrom('simulated_network.callback').where('id', '=', id),
);

const putOff = autocommitStatement((db, { id }: { id: string }) =>
  db
    .updateTable('simulated_network.callback')
    .set({ due_at: sql<string>`clock_timestamp() + 2 ^ (attempts - 1) * interval '1 second'` })
    .where('id', '=', id),
);

/** @returns `null` if the receiver accepted it, otherwise the reason */
async function post(options: CallbackOptions, callback: NetworkCallback): Promise<string | null> {
  const body = JSON.stringify(callback);
  try {
    const response = await request(options.callbackUrl, {
      method: 'POST',
      dispatcher: options.agent,
      signal: AbortSignal.timeout(5_000),
      headers: {
        'content-type': 'application/json',
        [SIGNATURE_HEADER]: signBody(body, options.callbackSecret),
      },
      body,
    });
    await response.body.dump();
    return response.statusCode >= 200 && response.statusCode < 300 ? null : `HTTP ${response.statusCode}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
