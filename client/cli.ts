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
as --since to go on from there.
`;

/** How often to look for new events. An event is posted when it is seen for the second time, see {@link follow}. */
const POLL_MS = 500;
/** How long an event may take to appear after a newer one. */
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
  const { apiKey, baseUrl, forwardTo, types, since } = options;
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  // The same for each start with one key, so that your program keeps its setting. It does not reveal the key.
  const secret = `whsec_${createHmac('sha256', apiKey).update('listen').digest('base64')}`;
  const client = new CardIssuing({ apiKey, baseUrl, maxRetries: 0 });
  try {
    await checkTypes(client, types, stop.signal);
    const from = since ?? (await newestEvent(client, stop.signal));
    console.log(`Posting ${client.mode} events to ${forwardTo}`);
    console.log(`Signing secret: ${secret}`);
    await follow({ client, forwardTo, types, secret, stop: stop.signal }, from);
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
  if (since !== undefined && !/^evt_[0-9a-z]{26}$/.test(since) && Number.isNaN(Date.parse(since)))
    throw new Error('--since must be a time, such as 2026-11-23T10:00:00Z, or the id of an event (evt_…)');
  const types = values.types?.split(',').map((type) => type.trim()) as EventType[] | undefined;
  const { CARD_ISSUING_API_KEY: apiKey = '', CARD_ISSUING_BASE_URL: baseUrl = '' } = process.env;
  if (apiKey === '') throw new Error('Set CARD_ISSUING_API_KEY to your key, sk_test_… or sk_live_….');
  if (baseUrl === '')
    throw new Error('Set CARD_ISSUING_BASE_URL to the base URL, such as https://api.example.com/v1.');
  return { apiKey, baseUrl, forwardTo, types: types === undefined ? null : new Set(types), since };
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

/** @returns its id, or '' if there are no events */
async function newestEvent(client: CardIssuing, stop: AbortSignal): Promise<string> {
  const newest = await untilAnswered(stop, () => client.events.list({ limit: 1 }, { signal: stop }));
  return newest?.data[0]?.id ?? '';
}

/**
 * Posts the events after `from` (a time, or an event's id, or '' for all) until it is stopped. A transaction that began
 * earlier can commit later, so an event can appear after a newer one: each event waits for a second look, after which all
 * older ones have nearly always appeared, and every look goes back to what was new LATE_MS ago. One that appears later
 * still is posted out of order.
 */
async function follow(listening: Listening, from: string): Promise<void> {
  const { client, types, stop } = listening;
  const isTime = from !== '' && !from.startsWith('evt_');
  const query = isTime ? { created_gte: new Date(from).toISOString() } : {};
  /** Every event up to this one has been posted, or is older than what was asked for. Ids sort by time. */
  let floor = isTime ? '' : from;
  /** When each event after `floor` was first seen. */
  const seen = new Map<string, number>();
  const posted = new Set<string>();
  let last = from;
  while (!stop.aborted) {
    const waiting: Event[] = [];
    await untilAnswered(stop, async () => {
      waiting.length = 0;
      for await (const event of client.events.list({ limit: 100, ...query }, { signal: stop })) {
        if (event.id <= floor) break;
        if (!posted.has(event.id)) waiting.push(event);
      }
    });
    const now = performance.now();
    for (const event of waiting.reverse()) {
      if (stop.aborted) break;
      if (!seen.has(event.id)) {
        seen.set(event.id, now);
        continue;
      }
      if (types === null || types.has(event.type)) await post(listening, event);
      posted.add(event.id);
      if (!last.startsWith('evt_') || event.id > last) last = event.id;
    }
    for (const [id, seenAt] of [...seen].sort()) {
      if (!posted.has(id) || now - seenAt < LATE_MS) break;
      floor = id;
      posted.delete(id);
      seen.delete(id);
    }
    await sleep(POLL_MS, undefined, { signal: stop }).catch(() => undefined);
  }
  console.log(
    last === '' ? 'Stopped: there were no events.' : `Stopped. To go on from here, pass --since ${last}`,
  );
}

/** Repeats a call until the API answers it. Undefined if it is stopped before. @throws {CardIssuingError} what repeating would not change */
async function untilAnswered<T>(stop: AbortSignal, call: () => PromiseLike<T>): Promise<T | undefined> {
  for (let pauseMs = POLL_MS; !stop.aborted; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await call();
    } catch (error) {
      if (stop.aborted) return undefined;
      if (!(error instanceof CardIssuingError)) throw error;
      const { status } = error;
      if (status !== null && status < 500 && status !== 429 && status !== 408) throw error;
      console.error(`Trying again: ${error.message}`);
      await sleep(Math.max(pauseMs, (error.retryAfterSeconds ?? 0) * 1_000), undefined, {
        signal: stop,
      }).catch(() => undefined);
    }
  }
  return undefined;
}

async function post({ forwardTo, secret }: Listening, event: Event): Promise<void> {
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
      signal: AbortSignal.timeout(POST_TIMEOUT_MS),
    });
    await response.body?.cancel();
    outcome = String(response.status);
  } catch (error) {
    outcome = `no response (${reason(error)})`;
  }
  console.log(`${created} ${id} ${type} -> ${outcome}, ${Math.round(performance.now() - startedAt)} ms`);
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `after ${POST_TIMEOUT_MS / 1_000} s`;
  const { code, message } = (error.cause ?? error) as { code?: string; message: string };
  return code ?? message;
}
