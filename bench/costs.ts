import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { query } from '../platform/db/sql.ts';
import { asOwner } from '../test/support/postgres.ts';
import { type Account, ask, createCard, fundedAccount } from './support/accounts.ts';
import { measure, readCpuSeconds } from './support/measure.ts';
import { type BenchService, startService } from './support/service.ts';
import { createEndpoints, saturate } from './webhook-load/load.ts';
import { startBenchReceiver } from './webhook-receiver/start.ts';

const ACCOUNTS = 20;
const IN_FLIGHT = 8;
/** How long idle processes are measured: what their timers, polls and autovacuum use is subtracted. */
const IDLE_MS = 5_000;
/** How often processor time is read, so that connections that close soon are counted too. */
const SAMPLE_MS = 1_000;
/** PostgreSQL's processes report their statistics after they have been idle for a second. */
const REPORTED_AFTER_MS = 1_500;

/** What one operation costs each component. docs/scaling.md derives from it what a machine can carry. */
export async function run(): Promise<void> {
  const service = await startService({ worker: true });
  const receiver = await startBenchReceiver();
  const pool = new Pool(service.origin, { connections: IN_FLIGHT });
  let meter: Awaited<ReturnType<typeof openMeter>> | undefined;
  try {
    const accounts: Account[] = [];
    while (accounts.length < ACCOUNTS) accounts.push(await fundedAccount(service));
    meter = await openMeter(service);
    const endpoints = await createEndpoints(service, receiver, { endpoints: ACCOUNTS });
    const cards = new Map<string, string>();
    for (const account of accounts) {
      cards.set(account.keys.test, await createCard(pool, 'test', account));
      cards.set(account.keys.live, await createCard(pool, 'live', account));
    }
    // Enough cards that no two requests change the same one at once.
    const own: [string, string][] = [];
    while (own.length < 100) {
      const account = accounts[own.length % ACCOUNTS] as Account;
      own.push([await createCard(pool, 'live', account), account.keys.live]);
    }
    let next = 0;
    const each =
      (mode: 'test' | 'live', work: (key: string, cardId: string) => Promise<unknown>) => async () => {
        const key = accounts[next++ % ACCOUNTS]?.keys[mode] ?? '';
        await work(key, cards.get(key) ?? '');
      };
    const anyAccount = (work: (account: Account) => Promise<unknown>) => async () => {
      await work(accounts[next++ % ACCOUNTS] as Account);
    };
    const purchase = { type: 'purchase', amount: 1, force: true };
    const operations: [string, number, () => Promise<void>][] = [
      ['GET /cards/{id}', 4_000, each('test', (key, id) => ask({ pool, key }, 'GET', `/cards/${id}`))],
      ['POST /cards, test', 2_000, anyAccount((account) => createCard(pool, 'test', account))],
      ['GET /cards, a page of 20', 2_000, each('test', (key) => ask({ pool, key }, 'GET', '/cards'))],
      [
        'simulated purchase',
        2_000,
        each('test', (key, id) =>
          ask({ pool, key }, 'POST', `/test/cards/${id}/simulate-transaction`, purchase),
        ),
      ],
      ['POST /cards, live', 600, anyAccount((account) => createCard(pool, 'live', account))],
      [
        'top-up, live',
        600,
        each('live', (key, id) => ask({ pool, key }, 'POST', `/cards/${id}/topups`, { amount: 100 })),
      ],
      [
        'freeze and unfreeze, live',
        200,
        async () => {
          const [id, key] = own[next++ % own.length] ?? ['', ''];
          await ask({ pool, key }, 'POST', `/cards/${id}/freeze`);
          await ask({ pool, key }, 'POST', `/cards/${id}/unfreeze`);
        },
      ],
    ];
    console.log(HEADINGS);
    for (const [name, count, work] of operations) {
      // As many as are then measured, so that V8 has finished compiling.
      await measure(count, IN_FLIGHT, work);
      const stop = await meter.begin();
      await measure(count, IN_FLIGHT, work);
      // The calls with which measure() warms up count too.
      console.log(printedRow(name, await stop(Math.ceil(count / 10) + count)));
    }
    await saturate(service, receiver, endpoints, 5_000);
    const stop = await meter.begin();
    await saturate(service, receiver, endpoints, 5_000);
    console.log(printedRow('webhook, delivered at once', await stop(5_000)));
  } finally {
    meter?.close();
    await pool.close();
    receiver.stop();
    await service.stop();
  }
}

/** Milliseconds of processor time, and what PostgreSQL counts. */
interface Costs {
  api: number;
  worker: number;
  temporal: number;
  serviceDatabase: number;
  temporalDatabase: number;
  transactions: number;
  walKiB: number;
  grownKiB: number;
}

const COLUMNS = {
  api: 'API ms',
  worker: 'worker ms',
  temporal: 'Temporal ms',
  serviceDatabase: 'our PG ms',
  temporalDatabase: 'its PG ms',
  transactions: 'commits',
  walKiB: 'WAL KiB',
  grownKiB: 'rows KiB',
} satisfies Record<keyof Costs, string>;
const NAMES = Object.keys(COLUMNS) as (keyof Costs)[];
const HEADINGS = ['one of', ...Object.values(COLUMNS)]
  .map((heading, index) => (index === 0 ? heading.padEnd(28) : heading.padStart(12)))
  .join('');
const printedRow = (name: string, costs: Costs) =>
  name.padEnd(28) + NAMES.map((column) => costs[column].toFixed(2).padStart(12)).join('');

async function openMeter(service: BenchService) {
  const [backend] = await query<{ pid: number }>(service.orm.em.fork(), 'SELECT pg_backend_pid() AS pid');
  const postmaster = (await processes()).find(({ pid }) => pid === backend?.pid)?.parent;
  const database = new URL(service.databaseUrl).pathname.slice(1);

  // Keeps what backends have used that have ended since.
  const seconds = { serviceDatabase: new Map<number, number>(), temporalDatabase: new Map<number, number>() };
  let temporalPids: number[] = [];
  async function sample(): Promise<void> {
    const all = await processes();
    const parents = new Map(all.map(({ pid, parent }) => [pid, parent]));
    // The machine can have other servers: ours is a descendant of this process.
    const isOwn = (pid: number | undefined): boolean =>
      pid !== undefined && (pid === process.pid || isOwn(parents.get(pid)));
    temporalPids = all
      .filter(({ pid, command }) => /^\S*temporal\S*/.test(command) && isOwn(pid))
      .map(({ pid }) => pid);
    for (const { pid, parent, command } of all) {
      if (parent !== postmaster) continue;
      const used = await readCpuSeconds(pid);
      if (Number.isNaN(used)) continue;
      if (command.includes(` ${database} `)) seconds.serviceDatabase.set(pid, used);
      else if (/ temporal\w* /.test(command)) seconds.temporalDatabase.set(pid, used);
    }
  }
  const sampling = setInterval(() => void sample(), SAMPLE_MS);

  async function read(): Promise<Costs> {
    await sleep(REPORTED_AFTER_MS);
    await sample();
    const sum = (all: Iterable<number>) => 1_000 * [...all].reduce((total, one) => total + one, 0);
    const usedMs = async (pids: number[]) => sum(await Promise.all(pids.map(readCpuSeconds)));
    const [counted] = await asOwner<{ transactions: string; wal: string; grown: string }>(
      service.databaseUrl,
      `SELECT xact_commit AS transactions, pg_current_wal_insert_lsn() - '0/0' AS wal,
         pg_database_size(current_database()) AS grown
       FROM pg_stat_database WHERE datname = current_database()`,
    );
    return {
      api: await usedMs(service.apiPids),
      worker: await usedMs([service.workerPid]),
      temporal: await usedMs(temporalPids),
      serviceDatabase: sum(seconds.serviceDatabase.values()),
      temporalDatabase: sum(seconds.temporalDatabase.values()),
      transactions: Number(counted?.transactions),
      walKiB: Number(counted?.wal) / 1_024,
      grownKiB: Number(counted?.grown) / 1_024,
    };
  }

  const difference = (from: Costs, to: Costs) =>
    Object.fromEntries(NAMES.map((name) => [name, to[name] - from[name]])) as unknown as Costs;
  const idleFrom = await read();
  const idleSince = performance.now();
  await sleep(IDLE_MS);
  const idle = difference(idleFrom, await read());
  const idleMs = performance.now() - idleSince;

  return {
    close: () => clearInterval(sampling),
    /**
     * @returns a function that ends the measurement, and returns the cost of one of `operations` operations
     */
    begin: async () => {
      const before = await read();
      const startedAt = performance.now();
      return async (operations: number): Promise<Costs> => {
        const spent = difference(before, await read());
        const share = (performance.now() - startedAt) / idleMs;
        return Object.fromEntries(
          NAMES.map((name) => [name, Math.max(0, spent[name] - share * idle[name]) / operations]),
        ) as unknown as Costs;
      };
    },
  };
}

/** All processes of the machine. Linux only. */
async function processes(): Promise<{ pid: number; parent: number; command: string }[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const read = (pid: string, file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
  return Promise.all(
    pids.map(async (pid) => {
      const stat = await read(pid, 'stat');
      const command = (await read(pid, 'cmdline')).replaceAll('\0', ' ');
      return {
        pid: Number(pid),
        parent: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]),
        command,
      };
    }),
  );
}
