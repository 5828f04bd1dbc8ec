import { setTimeout as sleep } from 'node:timers/promises';
import { openNodeApi } from '../deposits/tron/node-api.ts';
import { FAKE_USDT_CONTRACT } from '../dev/tron/drafts.ts';
import { query } from '../platform/db/sql.ts';
import { TEST_TRON } from '../test/support/deposits/seed-deposits.ts';
import { medianNumber, monotonicMs, readCpuSeconds, summarize } from './support/measure.ts';
import { DEPOSIT_CENTS, type Range, seedDeposits, seededDeposit, seedScan } from './support/seed.ts';
import { type BenchService, startService, until } from './support/service.ts';
import { type BenchNode, startBenchNode } from './tron-node/start.ts';
import { allReceived, createEndpoints, readDelays } from './webhook-load/load.ts';
import { type BenchReceiver, startBenchReceiver } from './webhook-receiver/start.ts';

const WATCHED = [10, 1_000, 100_000];
const ROUNDS = 3;
const BLOCKS = 400;
/** One block in this many has a payment of ours. */
const PAID_EVERY = 20;
/** As many blocks as the adapter asks for at a time. */
const AT_ONCE = 8;

/**
 * Measures catching up through real-sized blocks, next to only fetching and parsing the same blocks with the
 * adapter's HTTP; 5,000 payments to one account at once; and the time from a solid block to the partner's
 * webhook. The node, a process of its own, makes its blocks in advance.
 */
export async function run(): Promise<void> {
  const node = await startBenchNode();
  const receiver = await startBenchReceiver();
  try {
    await withService(node, '100ms', async (bench) => {
      for (const watched of WATCHED) await catchUp(bench, node, watched);
      await payManyAtOnce(bench, node, receiver);
      await timeWebhooks(bench, node, receiver, { blocks: 150, everyMs: 200 });
    });
    await withService(node, '3s', (bench) =>
      timeWebhooks(bench, node, receiver, { blocks: 60, everyMs: 700 }),
    );
  } finally {
    receiver.stop();
    node.stop();
  }
}

interface Bench {
  service: BenchService;
  scanInterval: string;
  /** How many deposits were seeded. */
  seeded: number;
}

/** Runs `work` on a service of its own, whose scan is at the newest block. */
async function withService(
  node: BenchNode,
  scanInterval: string,
  work: (bench: Bench) => Promise<void>,
): Promise<void> {
  const service = await startService({
    worker: true,
    env: {
      TRON_NETWORK: 'private',
      TRON_NODE_URLS: node.url,
      TRON_USDT_CONTRACT: FAKE_USDT_CONTRACT,
      TRON_XPUB: TEST_TRON.xpub,
      TRON_SCAN_INTERVAL: scanInterval,
    },
  });
  try {
    const bench = { service, scanInterval, seeded: 0 };
    await seedScan(service.databaseUrl, node.solidNumber);
    await work(bench);
  } finally {
    await service.stop();
  }
}

async function catchUp(bench: Bench, node: BenchNode, watched: number): Promise<void> {
  const { service } = bench;
  await seed(bench, [service.partnerId], watched - bench.seeded);
  const rounds: { ours: number; bare: number; cpuMs: number }[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const first = node.solidNumber + 1;
    const through = node.solidNumber + BLOCKS;
    const numbers = Array.from({ length: BLOCKS / PAID_EVERY }, (_, i) => (round * BLOCKS + i) % watched);
    await node.prepare({
      through,
      payments: numbers.map((number, i) => payment(first + i * PAID_EVERY, number)),
    });
    const cpuBefore = await readCpuSeconds(service.workerPid);
    const beganAtMs = await node.solidify(through);
    await untilScanned(service, through);
    const ours = (1_000 * BLOCKS) / (monotonicMs() - beganAtMs);
    const cpuMs = (1_000 * ((await readCpuSeconds(service.workerPid)) - cpuBefore)) / BLOCKS;
    // The first round is a warm-up.
    const bare = await readBare(node, { from: first, to: through + 1 });
    if (round > 0) rounds.push({ ours, bare, cpuMs });
  }
  const middle = (of: (round: (typeof rounds)[number]) => number) => medianNumber(rounds.map(of));
  console.log(
    `${watched.toLocaleString('en')} watched addresses`.padEnd(28) +
      `bare ${middle(({ bare }) => bare).toFixed(0)} blocks/s, the scan ${middle(({ ours }) => ours).toFixed(0)}, ` +
      `ratio ${middle(({ ours, bare }) => ours / bare).toFixed(2)} (goal at least 0.7); ` +
      `${middle(({ cpuMs }) => cpuMs).toFixed(1)} ms of the worker's CPU a block`,
  );
}

/** @returns blocks a second */
async function readBare(node: BenchNode, { from, to }: Range): Promise<number> {
  const api = openNodeApi({ full: node.url, solidity: node.url }, null, 10_000);
  const { signal } = new AbortController();
  let next = from;
  const beganAtMs = monotonicMs();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < to) {
        const number = next++;
        const header = api.solidBlock(number, signal);
        for await (const _ of api.solidInfos(number, signal));
        await header;
      }
    }),
  );
  const perSecond = (1_000 * (to - from)) / (monotonicMs() - beganAtMs);
  api.close();
  return perSecond;
}

/**
 * 5,000 deposits of one account within 25 blocks, and a single deposit of another account in the last of
 * them.
 */
async function payManyAtOnce(bench: Bench, node: BenchNode, receiver: BenchReceiver): Promise<void> {
  const { service } = bench;
  const [other] = await openBenchEndpoints(service, 1, receiver);
  const many = await seed(bench, [service.partnerId], 5_000);
  const one = await seed(bench, [other ?? ''], 1);
  const first = node.solidNumber + 1;
  const through = node.solidNumber + 25;
  const payments = Array.from({ length: 5_000 }, (_, i) =>
    payment(first + Math.floor(i / 200), many.from + i),
  );
  await node.prepare({ through, payments: [...payments, payment(through, one.from)] });
  const beganAtMs = await node.solidify(through);
  const credited = async (what: Range) => {
    await untilCredited(service, what);
    return monotonicMs() - beganAtMs;
  };
  const [allMs, oneMs] = await Promise.all([credited(many), credited(one)]);
  console.log(
    `5,000 payments of one account within 25 blocks: all credited after ${(allMs / 1_000).toFixed(1)} s, ` +
      `another account's after ${(oneMs / 1_000).toFixed(1)} s`,
  );
}

/**
 * The time from when a block is solid to the receipt of `deposit.confirmed`: one payment per block, for 20
 * accounts in turn.
 */
async function timeWebhooks(
  bench: Bench,
  node: BenchNode,
  receiver: BenchReceiver,
  { blocks, everyMs }: { blocks: number; everyMs: number },
): Promise<void> {
  const { service, scanInterval } = bench;
  const partnerIds = await openBenchEndpoints(service, 20, receiver);
  const deposits = await seed(bench, partnerIds, blocks);
  const first = node.solidNumber + 1;
  const payments = Array.from({ length: blocks }, (_, i) => payment(first + i, deposits.from + i));
  await node.prepare({ through: node.solidNumber + blocks, payments });
  const solidAtMs = new Map<string, number>();
  for (let i = 0; i < blocks; i++) {
    // The interval varies, so that it does not run in step with the scan.
    await sleep(everyMs * (0.5 + Math.random()));
    solidAtMs.set(seededDeposit(deposits.from + i).id, await node.solidify(first + i));
  }
  await untilCredited(service, deposits);
  const events = await query<{ id: string; deposit_id: string }>(
    service.orm.em.fork(),
    `SELECT id, body::json->'data'->'deposit'->>'id' AS deposit_id FROM event WHERE partner_id = ANY ($1)`,
    [partnerIds],
  );
  const solid = new Map(events.map(({ id, deposit_id }) => [id, solidAtMs.get(deposit_id) ?? Number.NaN]));
  const { p50Ms, p99Ms } = summarize(readDelays(solid, await allReceived(receiver, solid)));
  console.log(
    `from a solid block to the webhook, ${blocks} blocks, TRON_SCAN_INTERVAL=${scanInterval}: ` +
      `p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms`,
  );
}

const payment = (block: number, number: number): [number, string, string] => [
  block,
  seededDeposit(number).address,
  String(DEPOSIT_CENTS * 10_000),
];

async function seed(bench: Bench, partnerIds: readonly string[], count: number): Promise<Range> {
  const range = { from: bench.seeded, to: bench.seeded + count };
  await seedDeposits(bench.service.databaseUrl, partnerIds, range);
  bench.seeded = range.to;
  return range;
}

/** Creates partners whose live-mode webhooks go to the receiver. @returns their ids */
async function openBenchEndpoints(
  service: BenchService,
  count: number,
  receiver: BenchReceiver,
): Promise<string[]> {
  const endpoints = await createEndpoints(service, receiver, { endpoints: count, mode: 'live' });
  return endpoints.map(({ partnerId }) => partnerId);
}

async function untilScanned({ orm }: BenchService, through: number): Promise<void> {
  await until(
    `block ${through} is taken`,
    async () => {
      const [scan] = await query<{ block_number: string }>(
        orm.em.fork(),
        'SELECT block_number FROM chain_scan',
      );
      return Number(scan?.block_number) >= through;
    },
    5,
  );
}

async function untilCredited({ orm }: BenchService, { from, to }: Range): Promise<void> {
  await until(
    'all is credited',
    async () => {
      const [left] = await query<{ none: boolean }>(
        orm.em.fork(),
        `SELECT NOT EXISTS (SELECT FROM deposit WHERE id BETWEEN $1 AND $2 AND status <> 'confirmed') AS none`,
        [seededDeposit(from).id, seededDeposit(to - 1).id],
      );
      return left?.none === true;
    },
    5,
  );
}
