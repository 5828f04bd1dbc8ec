import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { createPartner } from '../../accounts/partners.ts';
import type { Mode } from '../../domain/mode.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { EVENT_WRITTEN } from '../../platform/db/notifications.ts';
import { query } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { sealEndpointSecret } from '../../webhooks/secrets.ts';
import { ask } from '../support/accounts.ts';
import { type Measurement, monotonicMs, summarize } from '../support/measure.ts';
import type { BenchService } from '../support/service.ts';
import type { BenchReceiver } from '../webhook-receiver/start.ts';

const BATCH = 250;
const PACED_SECONDS = 5;
export const PACED_PER_SECOND = 100;

/**
 * @returns by id, when each was about to be committed: a relay may send it before the writer knows of its
 * commit
 */
export async function writeEvents(
  { orm }: Pick<BenchService, 'orm'>,
  to: Endpoint[],
): Promise<Map<string, number>> {
  const events = to.map(({ partnerId }) => {
    const id = newId('evt');
    return { id, partnerId, body: requestBody(id) };
  });
  const committedAt = await transaction(orm, async (tx) => {
    await query(
      tx,
      `INSERT INTO event (id, partner_id, mode, type, body, created_at)
       SELECT e.id, e.partner_id, 'test', 'ping', e.body, now()
       FROM unnest($1::text[], $2::text[], $3::text[]) e (id, partner_id, body)`,
      [events.map(({ id }) => id), events.map(({ partnerId }) => partnerId), events.map(({ body }) => body)],
    );
    return monotonicMs();
  });
  await query(orm.em.fork(), 'SELECT pg_notify($1, $2)', [EVENT_WRITTEN, '']);
  return new Map(events.filter((_, i) => to[i]?.counted).map(({ id }) => [id, committedAt]));
}

/** A body about as long as that of `card.issued`. */
export const requestBody = (id: string) =>
  JSON.stringify({
    id,
    type: 'ping',
    created: new Date().toISOString(),
    mode: 'test',
    data: { filler: 'x'.repeat(500) },
  });

export async function saturate(
  service: BenchService,
  receiver: BenchReceiver,
  to: Endpoint[],
  count: number,
): Promise<Measurement> {
  await receiver.forget();
  const committed = new Map<string, number>();
  for (let i = 0; i < count; i += BATCH) {
    const batch = Array.from({ length: BATCH }, (_, j) => to[(i + j) % to.length] as Endpoint);
    for (const [id, at] of await writeEvents(service, batch)) committed.set(id, at);
  }
  return summary(committed, await allReceived(receiver, committed));
}

export async function pace(
  service: BenchService,
  receiver: BenchReceiver,
  to: Endpoint[],
  beside: Endpoint[] = [],
): Promise<Measurement> {
  await receiver.forget();
  const committed = new Map<string, number>();
  const writing: Promise<void>[] = [];
  const write = async (endpoints: Endpoint[]) => {
    for (const [id, at] of await writeEvents(service, endpoints)) committed.set(id, at);
  };
  for (let i = 0; i < PACED_PER_SECOND * PACED_SECONDS; i++) {
    writing.push(write([to[i % to.length] as Endpoint]));
    const other = beside[i % beside.length];
    if (other !== undefined && i % 10 === 0) writing.push(write([{ ...other, counted: false }]));
    await sleep(1_000 / PACED_PER_SECOND);
  }
  await Promise.all(writing);
  return summary(committed, await allReceived(receiver, committed));
}

/** Events at a steady rate, written in batches of a hundredth of a second. */
export async function stream(
  service: BenchService,
  receiver: BenchReceiver,
  to: Endpoint[],
  perSecond: number,
): Promise<Measurement> {
  await receiver.forget();
  const committed = new Map<string, number>();
  const startedAt = performance.now();
  for (let i = 0; i < PACED_SECONDS * 100; i++) {
    const batch = Array.from({ length: perSecond / 100 }, (_, j) => to[(i + j) % to.length] as Endpoint);
    for (const [id, at] of await writeEvents(service, batch)) committed.set(id, at);
    await sleep(Math.max(0, startedAt + 10 * (i + 1) - performance.now()));
  }
  return summary(committed, await allReceived(receiver, committed));
}

export async function allReceived(
  receiver: BenchReceiver,
  expected: ReadonlyMap<string, number>,
): Promise<Map<string, number>> {
  for (const giveUpAt = Date.now() + 300_000; Date.now() < giveUpAt; await sleep(200)) {
    const received = await receiver.received();
    if ([...expected.keys()].every((id) => received.has(id))) return received;
  }
  throw new Error('not every event was received within five minutes: look at the log of the worker');
}

export function summary(committed: Map<string, number>, received: Map<string, number>): Measurement {
  const delaysMs = readDelays(committed, received);
  const times = [...committed.keys()].map((id) => received.get(id) ?? 0);
  const seconds = (Math.max(...times) - Math.min(...committed.values())) / 1_000;
  return { perSecond: committed.size / seconds, ...summarize(delaysMs) };
}

/**
 * The time from each event's commit to its receipt. @throws Error if one was received before its commit, or
 * never
 */
export function readDelays(
  committed: ReadonlyMap<string, number>,
  received: ReadonlyMap<string, number>,
): number[] {
  return [...committed].map(([id, at]) => {
    const delayMs = (received.get(id) ?? Number.NaN) - at;
    if (!(delayMs >= 0))
      throw new Error(`${id} was received ${delayMs} ms after its commit: the clocks are wrong`);
    return delayMs;
  });
}

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

export interface Endpoint {
  partnerId: string;
  /** Whether its receipts are measured. */
  counted: boolean;
}

export async function createEndpoints(
  { orm, ring }: BenchService,
  { origin }: BenchReceiver,
  options: { endpoints: number; failing?: number; hanging?: boolean; mode?: Mode; ofEachAccount?: number },
): Promise<Endpoint[]> {
  const { mode = 'test', ofEachAccount = 1 } = options;
  const made: Endpoint[] = [];
  // An endpoint's path decides whether it fails, so for a failing tenth there are ten endpoints, one of which
  // fails.
  const count = options.failing === undefined ? options.endpoints : Math.max(options.endpoints, 10);
  for (let i = 0; i < count; i++) {
    const partner = await createPartner(
      { orm, actor: 'bench' },
      { name: `Receiver ${i}`, secureDetailsEnabled: false },
    );
    const fails = options.failing !== undefined && i % Math.round(1 / options.failing) === 0;
    const kind = options.hanging ? 'hang' : fails ? 'fail' : 'ok';
    for (let n = 0; n < ofEachAccount; n++) {
      const id = newId('we');
      const receiver = `${origin}/${kind}/${i}/${n}?of=${ofEachAccount}`;
      await query(
        orm.em.fork(),
        `INSERT INTO webhook_endpoint (id, partner_id, mode, url, secret) VALUES ($1, $2, $3, $4, $5)`,
        [id, partner.id, mode, receiver, sealEndpointSecret(ring, id, SECRET)],
      );
    }
    made.push({ partnerId: partner.id, counted: kind === 'ok' });
  }
  return made;
}

export const REPLAYED_EVENTS = 100_000;

/**
 * Writes {@link REPLAYED_EVENTS} events of the service's account, and creates an endpoint that they can be
 * replayed to.
 */
export async function startReplay(service: BenchService, receiver: BenchReceiver) {
  const { partnerId } = service;
  const pool = new Pool(service.origin);
  for (let written = 0; written < REPLAYED_EVENTS; written += 10 * BATCH)
    await writeEvents(
      service,
      Array.from({ length: 10 * BATCH }, () => ({ partnerId, counted: false })),
    );
  const { id } = await request('POST', '/webhook-endpoints', { url: `${receiver.origin}/ok/replayed` });
  const before = new Date().toISOString();
  let replayId = '';
  let startedAt = 0;

  interface Replay {
    id: string;
    status: string;
    matched: number;
    sent: number;
  }
  async function request(
    method: 'GET' | 'POST',
    path: string,
    body?: Record<string, string>,
  ): Promise<Replay> {
    return JSON.parse(await ask({ pool, key: service.testKey }, method, path, body));
  }

  return {
    endpoint: [{ partnerId, counted: true }],
    async start(): Promise<void> {
      const range = { created_gte: '2020-01-01T00:00:00Z', created_lte: before };
      const replay = await request('POST', `/webhook-endpoints/${id}/replay`, range);
      if (replay.matched !== REPLAYED_EVENTS) throw new Error(`the replay matches ${replay.matched} events`);
      replayId = replay.id;
      startedAt = performance.now();
    },
    read: () => request('GET', `/webhook-endpoints/${id}/replays/${replayId}`),
    tookMs: () => performance.now() - startedAt,
  };
}
