import type { Logger } from 'pino';
import { type Dispatcher, request } from 'undici';
import { CALLBACK_SIGNATURE_HEADER, signCallback } from '../../crypto/callback-signature.ts';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import type { NetworkCallback } from '../card-network/wire.ts';

const MOST_ATTEMPTS = 5;

export interface CallbackOptions {
  orm: Orm;
  callbackUrl: string;
  callbackSecret: string;
  agent: Dispatcher;
  logger: Logger;
}

interface DueCallback {
  id: string;
  token: string;
  type: NetworkCallback['type'];
  attempts: number;
}

/**
 * Sends the callbacks that are due, 20 at most. One that isn't taken comes again after 1, 2, 4 and 8 s and is then
 * dropped: polling finds what it would have told. Several processes may do this at once; a callback whose sender died
 * comes again after 10 s.
 * @returns how many were due.
 */
export async function sendDueCallbacks(options: CallbackOptions): Promise<number> {
  const due = await query<DueCallback>(
    options.orm.em.fork(),
    `WITH due AS (
       SELECT id FROM simulated_network.callback
        WHERE due_at <= clock_timestamp() ORDER BY due_at LIMIT 20 FOR UPDATE SKIP LOCKED)
     UPDATE simulated_network.callback c
        SET attempts = c.attempts + 1, due_at = clock_timestamp() + interval '10 seconds'
       FROM due, simulated_network.operation o
      WHERE c.id = due.id AND o.token = c.token
      RETURNING c.id, c.token, o.kind AS type, c.attempts`,
  );
  await Promise.all(due.map((callback) => sendCallback(options, callback)));
  return due.length;
}

async function sendCallback(options: CallbackOptions, callback: DueCallback): Promise<void> {
  const em = options.orm.em.fork();
  const refusal = await post(options, { token: callback.token, type: callback.type });
  if (refusal === null) {
    await query(em, 'DELETE FROM simulated_network.callback WHERE id = $1', [callback.id]);
  } else if (callback.attempts >= MOST_ATTEMPTS) {
    await query(em, 'DELETE FROM simulated_network.callback WHERE id = $1', [callback.id]);
    options.logger.warn(
      { token: callback.token, refusal },
      'simulated network: dropped a callback; polling will find the outcome',
    );
  } else {
    await query(
      em,
      `UPDATE simulated_network.callback
          SET due_at = clock_timestamp() + 2 ^ (attempts - 1) * interval '1 second' WHERE id = $1`,
      [callback.id],
    );
  }
}

/** @returns `null` where the receiver took it, else why not. */
async function post(options: CallbackOptions, callback: NetworkCallback): Promise<string | null> {
  const body = JSON.stringify(callback);
  try {
    const response = await request(options.callbackUrl, {
      method: 'POST',
      dispatcher: options.agent,
      signal: AbortSignal.timeout(5_000),
      headers: {
        'content-type': 'application/json',
        [CALLBACK_SIGNATURE_HEADER]: signCallback(body, options.callbackSecret),
      },
      body,
    });
    await response.body.dump();
    return response.statusCode >= 200 && response.statusCode < 300 ? null : `HTTP ${response.statusCode}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
