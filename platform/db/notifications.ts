import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import pg from 'pg';
import type { Logger } from 'pino';
import { coalesce } from '../process/coalesce.ts';
import { describeError } from '../process/describe-error.ts';
import { asService } from '../process/work-context.ts';
import { destroyClient } from './connection.ts';
import { checkLogin } from './login.ts';
import type { Orm, ServiceDatabase } from './orm.ts';
import { CLIENT_KEEPALIVE, SERVICE_LIMITS, startupOptions } from './session.ts';
import { autocommitStatement } from './sql.ts';

// Channels of NOTIFY. A notification is a hint that saves time: a listener must also work without it.

/** Payload: the id of a claim that has its response. */
export const CLAIM_HAS_RESPONSE = 'claim_answered';

/** No payload: there are events to send. */
export const EVENT_WRITTEN = 'event_written';

/**
 * No payload: webhook endpoints were enabled or deleted, so what waits for them is to be sent or given up; or
 * a replay began.
 */
export const ENDPOINT_CHANGED = 'endpoint_changed';

/** No payload: deposits have payments to judge, or have changes that their workflows don't know about. */
export const DEPOSIT_CHANGED = 'deposit_changed';

/**
 * Payload: the network's id of a card that was issued or identified, if something that the network reported
 * waits for it.
 */
export const CARD_IDENTIFIED = 'card_identified';

/** No payload: something has changed at the card network, for a worker to look at. */
export const NETWORK_INBOX = 'network_inbox';

/** Payload: the id of the partner whose test clock was advanced. */
export const TEST_CLOCK_ADVANCED = 'test_clock_advanced';

/** The interval between one process's notifications. Under load, a few hundred transactions share one. */
const PAUSE_MS = 10;
const MAX_PAUSE_MS = 5_000;

/**
 * Tells the webhook relays that there are events to send. It is a separate statement after the commit,
 * because PostgreSQL serializes the commits of transactions that notify.
 */
export async function notifyEvents(orm: Orm): Promise<void> {
  await notify(orm, { channel: EVENT_WRITTEN, payload: '' });
}

/** Tells the workers that a webhook endpoint was enabled or deleted, like {@link notifyEvents}. */
export async function notifyEndpoints(orm: Orm): Promise<void> {
  await notify(orm, { channel: ENDPOINT_CHANGED, payload: '' });
}

/** Tells the workers that a deposit's row was written, like {@link notifyEvents}. */
export async function notifyDeposits(orm: Orm): Promise<void> {
  await notify(orm, { channel: DEPOSIT_CHANGED, payload: '' });
}

/** Tells the workers that something has changed at the card network, like {@link notifyEvents}. */
export async function notifyNetworkInbox(orm: Orm): Promise<void> {
  await notify(orm, { channel: NETWORK_INBOX, payload: '' });
}

/** Tells the other API processes that a test clock was advanced. */
export async function notifyTestClock(orm: Orm, partnerId: string): Promise<void> {
  await notify(orm, { channel: TEST_CLOCK_ADVANCED, payload: partnerId });
}

const notify = autocommitStatement(
  (_, { channel, payload }: { channel: string; payload: string }) =>
    sql`SELECT pg_notify(${channel}, ${payload})`,
);

/**
 * Sends notifications in the background: the first at once, then one for all those requested in the meantime.
 * @param onError is called with a failure; the listeners then find the rows when they next poll
 */
export function createNotifier(notify: () => Promise<void>, onError: (error: unknown) => void): () => void {
  const wanted = coalesce<null, void>({
    maxTogether: Number.POSITIVE_INFINITY,
    run: (calls) =>
      // It serves all accounts, so it runs as the service.
      asService('notifications', async () => {
        await notify().catch(onError);
        await sleep(PAUSE_MS, undefined, { ref: false });
        return calls.map(() => undefined);
      }),
  });
  return () => void wanted(null);
}

export interface NotificationListener {
  stop(): Promise<void>;
}

/**
 * Listens on channels, on its own connection. If the connection is lost, it reconnects, but notifications in
 * the meantime are lost.
 * @param options.database PostgreSQL itself, because LISTEN does not work through a transaction pooler
 * @param options.on what to do with a payload, by channel
 * @param options.onListening called on every connect, so that the listener can look for what it missed
 */
export function listenToNotifications(options: {
  database: ServiceDatabase['direct'];
  on: Record<string, (payload: string) => void>;
  logger: Logger;
  onListening?: () => void;
}): NotificationListener {
  const { databaseUrl, role, onOwnerLogin } = options.database;
  const channels = Object.keys(options.on);
  const stopping = new AbortController();
  let client: pg.Client | undefined;

  const hold = async () => {
    client = new pg.Client({
      connectionString: databaseUrl,
      options: startupOptions(SERVICE_LIMITS, role && { role }),
      connectionTimeoutMillis: 5_000,
      ...CLIENT_KEEPALIVE,
    });
    const ended = new Promise<void>((resolve) => client?.once('end', resolve));
    client.on('error', (error) => {
      if (!stopping.signal.aborted)
        options.logger.warn({ error: describeError(error) }, 'lost the connection to the database');
    });
    client.on('notification', ({ channel, payload }) => options.on[channel]?.(payload ?? ''));
    await client.connect();
    await checkLogin(client, { role, pooled: false, onOwnerLogin });
    for (const channel of channels) await client.query(`LISTEN ${client.escapeIdentifier(channel)}`);
    options.onListening?.();
    await ended;
  };
  const running = (async () => {
    for (let pauseMs = 100; !stopping.signal.aborted; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      try {
        await hold();
        pauseMs = 100;
      } catch (error) {
        options.logger.warn(
          { channels, error: describeError(error) },
          'cannot listen for notifications from the database; trying again',
        );
        if (client !== undefined) destroyClient(client);
      }
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch((error) => {
        if (!stopping.signal.aborted) throw error;
      });
    }
  })();
  return {
    stop: async () => {
      stopping.abort();
      if (client !== undefined) destroyClient(client);
      await running;
    },
  };
}
