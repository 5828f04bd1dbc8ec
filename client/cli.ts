#!/usr/bin/env node
import { createHash, createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { CardIssuing } from './card-issuing.ts';
import { CardIssuingError } from './errors.ts';
import type { Event, EventType } from './generated/types.gen.ts';

const HELP = `Usage: virtual-card-issuing-client listen --forward-to URL [--types TYPE,…] [--since TIME|EVENT]

Follows your account's events and posts each new one to a URL, signed as a webhook, so that a program on your machine
can receive webhooks without a public address.

  --forward-to URL        where to post events, such as http://localhost:4242/webhooks
  --types TYPE,…          only these types, such as card.issued,topup.succeeded
  --since TIME|EVENT      also the events since a time (ISO 8601) or after an event (evt_…). Without it, only events from now on
  --help                  this text

It reads CARD_ISSUING_API_KEY (a key with the scope events:read, which determines the mode) and CARD_ISSUING_BASE_URL, such as
https://api.example.com/v1.

Each event is posted once, oldest first, and not again if your program refuses it. Stop it with Ctrl-C: it then prints what to pass
as --since to go on from there. No event is lost between the two, but those of the last 15 seconds may be posted again.
`;

/** How often to look for new events. */
const POLL_MS = 500;
/** How long after its id was made an event may take to appear. */
const LATE_MS = 15_000;
const MAX_PAUSE_MS = 10_000;
const POST_TIMEOUT_MS = 10_000;

interface Listening {
  client: CardIssuing;
  forwardTo: string;
  types: ReadonlySet<EventType> | null;
  secret: string;
  stop: AbortSignal;
}

process.exitCode = await main(process.argv.slice(2));

async function main(argv: string[]): Promise<number> {
  let options: ReturnType<typeof readArguments>;
  try {
    options = readArguments(argv);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    console.error(`${error.message}\nSee --help.`);
    return 2;
  }
  if (options === null) {
    process.stdout.write(HELP);
    return 0;
  }
  const { client, secret, baseUrl, forwardTo, types, since } = options;
  if (client.mode === 'live') {
    console.error(`This is a live key: it goes to ${baseUrl}, and your live events go to ${forwardTo}`);
  }
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  try {
    await checkTypes(client, types, stop.signal);
    await follow({ client, forwardTo, types, secret, stop: stop.signal }, since);
    return 0;
  } catch (error) {
    if (!(error instanceof CardIssuingError)) throw error;
    console.error(`Stopped: ${error.message}`);
    return 1;
  }
}

/** @returns null for --help @throws {Error} the command line or the environment is wrong */
function readArguments(argv: string[]) {
  const { values, positionals } = parseArgs({
    args: argv,
    allowPositionals: true,
    options: {
      'forward-to': { type: 'string' },
      types: { type: 'string' },
      since: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true || argv.length === 0) return null;
  if (positionals.join(' ') !== 'listen') throw new Error('The command is: listen');
  const { 'forward-to': forwardTo = '', since } = values;
  if (!/^https?:\/\//.test(forwardTo) || !URL.canParse(forwardTo))
    throw new Error('--forward-to must be an http or https URL, such as http://localhost:4242/webhooks');
  const { username, password } = new URL(forwardTo);
  if (username !== '' || password !== '')
    throw new Error('--forward-to must not have a user name or a password: check the signature instead');
  const isEvent = since !== undefined && /^evt_[0-9a-z]{26}$/.test(since);
  if (since !== undefined && !isEvent && Number.isNaN(Date.parse(since)))
    throw new Error('--since must be a time, such as 2026-11-23T10:00:00Z, or the id of an event (evt_…)');
  const types = values.types?.split(',').map((type) => type.trim()) as EventType[] | undefined;
  const apiKey = (process.env.CARD_ISSUING_API_KEY ?? '').trimEnd();
  const baseUrl = process.env.CARD_ISSUING_BASE_URL ?? '';
  if (apiKey === '') throw new Error('Set CARD_ISSUING_API_KEY to your key, sk_test_… or sk_live_….');
  if (baseUrl === '')
    throw new Error('Set CARD_ISSUING_BASE_URL to the base URL, such as https://api.example.com/v1.');
  return {
    client: openClient(apiKey, baseUrl),
    // The same for each start with one key, so that your program keeps its setting. It does not reveal the
    // key.
    secret: `whsec_${createHmac('sha256', apiKey).update('listen').digest('base64')}`,
    baseUrl,
    forwardTo,
    types: types === undefined ? null : new Set(types),
    since: since === undefined || isEvent ? since : new Date(since).toISOString(),
  };
}

/** @throws {Error} the key or the base URL is malformed */
function openClient(apiKey: string, baseUrl: string): CardIssuing {
  try {
    return new CardIssuing({ apiKey, baseUrl, maxRetries: 0 });
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    throw new Error(`Look at CARD_ISSUING_API_KEY and CARD_ISSUING_BASE_URL: ${what}.`);
  }
}

/** The API says which types there are. @throws {CardIssuingError} also if the key is not accepted */
async function checkTypes(
  client: CardIssuing,
  types: ReadonlySet<EventType> | null,
  stop: AbortSignal,
): Promise<void> {
  for (const type of types ?? [undefined]) {
    await untilAnswered(stop, () =>
      client.events.list({ limit: 1, ...(type && { type }) }, { signal: stop }),
    );
  }
}

/**
 * Posts the events since a time or after an event, or from now on, until it is stopped. At the end, however
 * it comes, it prints where to go on.
 *
 * A transaction that began earlier can commit later, so an event can appear after a newer one. Each event
 * waits for a second look, after which all older ones have nearly always appeared, and every look goes back
 * to what was new LATE_MS ago. One that appears later still is posted out of order. What is printed at the
 * end is an event that no older one can follow any more.
 */
async function follow(listening: Listening, since: string | undefined): Promise<void> {
  const { client, forwardTo, types, secret, stop } = listening;
  const isTime = since !== undefined && !since.startsWith('evt_');
  const query = isTime ? { created_gte: since } : {};
  /** Every event up to this one has been posted, or is older than what was asked for. Ids sort by time. */
  let floor = since === undefined || isTime ? '' : since;
  /** Those after `floor`. */
  const posted = new Set<string>();
  let newestSeen = '';
  /** By how much the service's clock is ahead of `performance.now()`, at least. */
  let aheadMs = Number.NEGATIVE_INFINITY;
  let goOnFrom = since ?? new Date(Date.now() - LATE_MS).toISOString();
  try {
    if (since === undefined) {
      const page = await untilAnswered(stop, () => client.events.list({ limit: 100 }, { signal: stop }));
      for (const { id } of page?.data ?? []) posted.add(id);
      floor = page?.next_cursor ?? '';
      goOnFrom = page?.data[0]?.id ?? goOnFrom;
    }
    if (!stop.aborted) {
      console.log(`Posting ${client.mode} events to ${forwardTo}`);
      console.log(`Signing secret: ${secret}`);
    }
    while (!stop.aborted) {
      const lookedAtMs = performance.now();
      const events = await listAfter(listening, floor, query);
      const newest = events[0]?.id ?? '';
      if (newest !== '') aheadMs = Math.max(aheadMs, timeOf(newest) - performance.now());
      for (const event of events.reverse()) {
        const isOld = timeOf(event.id) <= lookedAtMs + aheadMs - LATE_MS;
        if (stop.aborted || (event.id > newestSeen && !isOld)) break;
        if (!posted.has(event.id)) {
          if (types === null || types.has(event.type)) await post(listening, event);
          // The post may have been cut off.
          if (stop.aborted) break;
          posted.add(event.id);
        }
        if (isOld) {
          floor = event.id;
          posted.delete(event.id);
          if (floor > goOnFrom) goOnFrom = floor;
        }
      }
      if (newest > newestSeen) newestSeen = newest;
      await sleep(POLL_MS, undefined, { signal: stop }).catch(() => undefined);
    }
  } finally {
    console.log(`To go on from here, pass --since ${goOnFrom}`);
  }
}

/** The events after `floor`, newest first; none if it is stopped before it has read them all. */
async function listAfter(
  { client, stop }: Listening,
  floor: string,
  query: { created_gte?: string },
): Promise<Event[]> {
  const found: Event[] = [];
  let cursor: string | null = null;
  do {
    const after: { starting_after?: string } = cursor === null ? {} : { starting_after: cursor };
    const page = await untilAnswered(stop, () =>
      client.events.list({ limit: 100, ...query, ...after }, { signal: stop }),
    );
    if (page === undefined) return [];
    for (const event of page.data) {
      if (event.id <= floor) return found;
      found.push(event);
    }
    cursor = page.next_cursor;
  } while (cursor !== null);
  return found;
}

/** When an event's id was made, in ms since 1970: the ten characters after `evt_`, in Crockford's base 32. */
function timeOf(id: string): number {
  let timeMs = 0;
  for (const digit of id.slice(4, 14))
    timeMs = timeMs * 32 + '0123456789abcdefghjkmnpqrstvwxyz'.indexOf(digit);
  return timeMs;
}

/**
 * Repeats a call until the API answers it. Undefined if it is stopped before. @throws {CardIssuingError} what
 * repeating would not change
 */
async function untilAnswered<T>(stop: AbortSignal, call: () => PromiseLike<T>): Promise<T | undefined> {
  for (let pauseMs = POLL_MS; !stop.aborted; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await call();
    } catch (error) {
      if (stop.aborted) return undefined;
      if (!(error instanceof CardIssuingError)) throw error;
      const { status, code } = error;
      const isFinal = status !== null && status < 500 && status !== 429 && status !== 408;
      // Something other than the API may respond for a while, such as the page of a hotel's network.
      if (isFinal && code !== 'unexpected_response') throw error;
      console.error(`Trying again: ${error.message}`);
      await sleep(Math.max(pauseMs, (error.retryAfterSeconds ?? 0) * 1_000), undefined, {
        signal: stop,
      }).catch(() => undefined);
    }
  }
  return undefined;
}

async function post({ forwardTo, secret, stop }: Listening, event: Event): Promise<void> {
  const { id, type, created, mode, data } = event;
  const body = JSON.stringify({ id, type, created, mode, data });
  const timestamp = String(Date.now());
  const startedAt = performance.now();
  let outcome: string;
  try {
    const response = await fetch(forwardTo, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-service-event-id': id,
        'x-service-timestamp': timestamp,
        'x-service-signature': createHash('sha256')
          .update(timestamp)
          .update(body)
          .update(secret)
          .digest('hex'),
      },
      body,
      redirect: 'manual',
      signal: AbortSignal.any([stop, AbortSignal.timeout(POST_TIMEOUT_MS)]),
    });
    await response.body?.cancel();
    outcome = String(response.status);
  } catch (error) {
    outcome = `no response (${stop.aborted ? 'stopped' : reason(error)})`;
  }
  console.log(`${created} ${id} ${type} -> ${outcome}, ${Math.round(performance.now() - startedAt)} ms`);
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `after ${POST_TIMEOUT_MS / 1_000} s`;
  const { code, message } = (error.cause ?? error) as { code?: string; message: string };
  return code ?? message;
}
