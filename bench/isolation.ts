import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { updatePartner } from '../accounts/partners.ts';
import type { FloodRequest } from './flood/main.ts';
import { type Flood, startFlood } from './flood/start.ts';
import { ask, fundAccount, fundedAccount } from './support/accounts.ts';
import { requireSoundLedger } from './support/database.ts';
import { medianNumber, readResidentMb, summarize } from './support/measure.ts';
import { createNetworkRequests, readNetworkCardId } from './support/network.ts';
import { seedCards, seedEvents } from './support/seed.ts';
import { type BenchService, startService } from './support/service.ts';
import { allReceived, createEndpoints, type Endpoint, readDelays, writeEvents } from './webhook-load/load.ts';
import { type BenchReceiver, startBenchReceiver } from './webhook-receiver/start.ts';

const ROUNDS = 3;
const ALONE_MS = 2_000;
const BESIDE_MS = 3_000;
/** How long a flood takes to fill its queues. */
const ONSET_MS = 1_000;
/** A key's general limit, and the rate of a flood, in each process. */
const FLOOD_PER_SECOND = 100;
const SEEDED_CARDS = 10_000;
const SEEDED_EVENTS = 50_000;

/** Decisions in a turn, so that a round has enough of them for a 99th percentile. */
const DECISIONS = 5;

/** Balances read in a turn. */
const READS = 5;

/** Connections that read nothing of their answers, and clients that send the worst bodies. */
const READERS = 200;
const BODY_CLIENTS = 4;

/** What the quiet account does, one request after the other. */
const QUIET = ['POST /cards, live', 'GET /cards', 'GET /balance', 'decision', 'webhook'] as const;
type Quiet = (typeof QUIET)[number];

const ASKED = process.env.BENCH_FLOODS?.split(',');

interface NamedFlood {
  name: string;
  begin(): Flood;
  /** How many times slower the quiet account may be at most. */
  goal: number;
}

interface Watched {
  durationsMs: Record<Quiet, number[]>;
  accepted: number;
  failed: number;
}

/**
 * Measures a quiet account alone and next to another account's flood, in alternating rounds. BENCH_FLOODS
 * names the floods, comma-separated, if it is not all of them.
 */
export async function run(): Promise<void> {
  for (const apis of [1, 2]) {
    const service = await startService({
      worker: true,
      apis,
      env: { CARD_NETWORK: 'simulated', RATE_LIMIT_PER_SECOND: String(FLOOD_PER_SECOND) },
    });
    const receiver = await startBenchReceiver();
    try {
      console.log(`${apis} API process(es)`);
      const quiet = await createQuietAccount(service, receiver);
      for (const flood of await createFloods(service, receiver)) {
        if (ASKED === undefined || ASKED.includes(flood.name)) await compare(flood, quiet, receiver, service);
      }
      await requireSoundLedger(service.orm);
    } finally {
      receiver.stop();
      await service.stop();
    }
  }
}

async function compare(
  { name, begin, goal }: NamedFlood,
  quiet: QuietAccount,
  receiver: BenchReceiver,
  { apiPids }: BenchService,
): Promise<void> {
  const rounds: { alone: Watched; beside: Watched }[] = [];
  const answered: Record<string, number> = {};
  const grownMb: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const alone = await quiet.watch(ALONE_MS);
    const before = await Promise.all(apiPids.map(readResidentMb));
    const flood = begin();
    await sleep(ONSET_MS);
    rounds.push({ alone, beside: await quiet.watch(BESIDE_MS) });
    const after = await Promise.all(apiPids.map(readResidentMb));
    grownMb.push(...after.map((mb, index) => mb - (before[index] ?? Number.NaN)));
    for (const [status, count] of Object.entries(await flood.stop())) {
      answered[status] = (answered[status] ?? 0) + count;
    }
    await receiver.forget();
  }
  const answers = Object.entries(answered).map(([status, count]) => `${count} times ${status}`);
  console.log(`  beside ${name}${answers.length > 0 ? ` (answered ${answers.join(', ')})` : ''}`);
  for (const what of QUIET) {
    const figures = rounds.map(({ alone, beside }) => ({
      alone: summarize(alone.durationsMs[what]),
      beside: summarize(beside.durationsMs[what]),
    }));
    const ratio = medianNumber(figures.map(({ alone, beside }) => beside.p50Ms / alone.p50Ms));
    const alone = describe(figures.map((figure) => figure.alone));
    const beside = describe(figures.map((figure) => figure.beside));
    const also = what === 'decision' ? ', and a p99 of at most 100 ms' : '';
    console.log(
      `    ${what.padEnd(18)} alone ${alone} beside ${beside} p50, times ${ratio.toFixed(2)} (goal at most ${goal}${also})`,
    );
  }
  const total = (of: (watched: Watched) => number) => rounds.reduce((sum, { beside }) => sum + of(beside), 0);
  console.log(
    `    5xx ${total(({ failed }) => failed)}, 202 ${total(({ accepted }) => accepted)} (goal 0 and 0)`,
  );
  console.log(`    an API process grew by at most ${Math.max(...grownMb).toFixed(0)} MB in a round`);
}

/** The median of the rounds. */
function describe(rounds: { p50Ms: number; p99Ms: number }[]): string {
  const [p50, p99] = (['p50Ms', 'p99Ms'] as const).map((of) =>
    medianNumber(rounds.map((round) => round[of])),
  );
  return `p50 ${p50?.toFixed(1)}, p99 ${p99?.toFixed(1)} ms`.padEnd(28);
}

interface QuietAccount {
  watch(forMs: number): Promise<Watched>;
}

async function createQuietAccount(service: BenchService, receiver: BenchReceiver): Promise<QuietAccount> {
  const [endpoint] = await createEndpoints(service, receiver, { endpoints: 1 });
  const { partnerId } = endpoint as Endpoint;
  const key = (await fundAccount(service, partnerId)).keys.live;
  const networkCardId = await readNetworkCardId(service, await issueCard(service, key, 100_000));
  const askAsNetwork = createNetworkRequests(service.ring);
  const pools = service.origins.map((origin) => new Pool(origin, { connections: 2 }));

  async function watch(forMs: number): Promise<Watched> {
    const watched: Watched = {
      durationsMs: {
        'POST /cards, live': [],
        'GET /cards': [],
        'GET /balance': [],
        decision: [],
        webhook: [],
      },
      accepted: 0,
      failed: 0,
    };
    const time = async (what: Quiet, pool: Pool, request: FloodRequest) => {
      const startedAt = performance.now();
      const { statusCode, body } = await pool.request({
        method: request.method,
        path: `/v1${request.path}`,
        headers: {
          authorization: `Bearer ${key}`,
          'idempotency-key': randomUUID(),
          ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: request.body ?? null,
      });
      await body.dump();
      watched.durationsMs[what].push(performance.now() - startedAt);
      if (statusCode === 202) watched.accepted += 1;
      if (statusCode >= 500) watched.failed += 1;
      if (statusCode >= 400 && statusCode < 500) throw new Error(`${request.path} answered ${statusCode}`);
    };
    const committed = new Map<string, number>();
    const startedAt = performance.now();
    for (let turn = 0; performance.now() - startedAt < forMs; turn++) {
      const pool = pools[turn % pools.length] as Pool;
      await time('POST /cards, live', pool, { method: 'POST', path: '/cards', body: newCard(randomUUID()) });
      await time('GET /cards', pool, { method: 'GET', path: '/cards' });
      for (let i = 0; i < READS; i++) await time('GET /balance', pool, { method: 'GET', path: '/balance' });
      for (let i = 0; i < DECISIONS; i++) {
        const askedAt = performance.now();
        await askAsNetwork(pool, networkCardId, 1);
        watched.durationsMs.decision.push(performance.now() - askedAt);
      }
      for (const [id, at] of await writeEvents(service, [endpoint as Endpoint])) committed.set(id, at);
      await sleep(10);
    }
    const received = await allReceived(receiver, committed);
    watched.durationsMs.webhook.push(...readDelays(committed, received));
    return watched;
  }
  // A warm-up: connections are made, and code is compiled.
  await watch(ALONE_MS);
  return { watch };
}

/** The floods by name, each with how it starts. */
async function createFloods(service: BenchService, receiver: BenchReceiver): Promise<NamedFlood[]> {
  const { partnerId } = service;
  await updatePartner({ orm: service.orm, actor: 'bench' }, partnerId, { secureDetailsEnabled: true });
  const { test: testKey, live: liveKey } = (await fundAccount(service, partnerId)).keys;
  await seedCards(service.databaseUrl, partnerId, 1, SEEDED_CARDS);
  await seedEvents(service.databaseUrl, partnerId, SEEDED_EVENTS);
  const cardIds: string[] = [];
  for (let i = 0; i < 8; i++) cardIds.push(await issueCard(service, testKey));

  const requests = (key: string, asked: FloodRequest[]) => () =>
    startFlood({
      kind: 'steady',
      count: FLOOD_PER_SECOND,
      origins: service.origins,
      key,
      requests: asked,
    });
  const deliveries = async (how: { failing?: number; hanging?: boolean }) => {
    const [endpoint] = await createEndpoints(service, receiver, { endpoints: 1, ...how });
    return () => startEvents(service, endpoint as Endpoint);
  };
  const readersKey = await accountWithLargeCards(service);
  const floods: [string, () => Flood, number?][] = [
    [
      'test-mode writes',
      requests(testKey, [
        ...cardIds.map((id) => ({ method: 'POST' as const, path: `/cards/${id}/freeze` })),
        ...cardIds.map(() => ({ method: 'POST' as const, path: '/cards', body: newCard('$unique') })),
        ...cardIds.map((id) => ({ method: 'POST' as const, path: `/cards/${id}/unfreeze` })),
      ]),
    ],
    ['authorizations', requests(testKey, cardIds.map(authorizationRequest))],
    ['live writes', requests(liveKey, [{ method: 'POST', path: '/cards', body: newCard('$unique') }])],
    [
      'expensive reads and reveals',
      requests(
        testKey,
        [
          '/cards?limit=100',
          '/cards?limit=100&status=blocked',
          '/events?limit=100&type=topup.failed',
          '/events?limit=100&delivery_status=delivered&type=card.issued',
          '/balance/transactions?limit=100',
          `/cards/${cardIds[0]}/secure-details`,
        ].map((path) => ({ method: 'GET', path })),
      ),
    ],
    ['failing webhooks', await deliveries({ failing: 1 })],
    ['hanging webhooks', await deliveries({ hanging: true })],
    [
      'slow readers',
      () =>
        startFlood({
          kind: 'readers',
          count: READERS,
          origins: service.origins,
          key: readersKey,
          requests: [{ method: 'GET', path: '/cards?limit=100' }],
        }),
      2,
    ],
    [
      'worst bodies',
      () =>
        startFlood({
          kind: 'clients',
          count: BODY_CLIENTS,
          origins: service.origins,
          key: testKey,
          requests: WORST_BODIES.map((body) => ({ method: 'POST', path: '/cards', body })),
        }),
      2,
    ],
  ];
  return floods.map(([name, begin, goal = 3]) => ({ name, begin, goal }));
}

/** Bodies of 64 KB that take long to read: many values, many names, what is JSON until its end is missing. */
const WORST_BODIES = [
  `[${'1,'.repeat(32_000)}1]`,
  `{${Array.from({ length: 9_000 }, (_, index) => `"${index.toString(36)}":1`)
    .join(',')
    .slice(0, 65_000)
    .replace(/,[^,]*$/, '')}}`,
  `[${'1,'.repeat(32_000)}1`,
];

/** @returns the test key of an account whose pages of cards are as long as they can be */
async function accountWithLargeCards(service: BenchService): Promise<string> {
  const account = await fundedAccount(service);
  const metadata = Object.fromEntries(
    Array.from({ length: 50 }, (_, index) => [`key${index}`, '界'.repeat(300)]),
  );
  const pool = new Pool(service.origin);
  for (let made = 0; made < 100; made++) {
    const card = { amount: 1_000, external_ref: randomUUID(), metadata };
    await ask({ pool, key: account.keys.test }, 'POST', '/cards', card);
  }
  await pool.close();
  return account.keys.test;
}

/** An account's events at its full rate, to an endpoint that does not accept them. */
function startEvents(service: BenchService, to: Endpoint): Flood {
  let stopped = false;
  const writing = (async () => {
    while (!stopped) {
      await writeEvents(
        service,
        Array.from({ length: FLOOD_PER_SECOND / 20 }, () => to),
      );
      await sleep(50);
    }
  })();
  return {
    stop: async () => {
      stopped = true;
      await writing;
      return {};
    },
  };
}

const newCard = (externalRef: string) => JSON.stringify({ amount: 1_000, external_ref: externalRef });

const authorizationRequest = (cardId: string): FloodRequest => ({
  method: 'POST',
  path: `/test/cards/${cardId}/authorizations`,
  body: JSON.stringify({ amount: 1 }),
});

async function issueCard({ origin }: BenchService, key: string, amount = 1_000): Promise<string> {
  const pool = new Pool(origin);
  const card = await ask({ pool, key }, 'POST', '/cards', { amount, external_ref: randomUUID() });
  await pool.close();
  return JSON.parse(card).id;
}
