import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { freePort } from '../dev/free-port.ts';
import { startEmbeddedPostgres } from '../dev/postgres/embedded-postgres.ts';
import { applyPosting } from '../ledger/apply-posting.ts';
import type { Posting } from '../ledger/posting.ts';
import { SERVICE_ROLE } from '../platform/db/login.ts';
import { migrate } from '../platform/db/migrate.ts';
import { openOrm } from '../platform/db/orm.ts';
import type { Transactor } from '../platform/db/sql.ts';
import { describe, type Measurement, measure, median, medianNumber } from './support/measure.ts';
import { scaled } from './support/scale.ts';

/** The least that a call can be: the SQL function, as pgbench and a bare client run it. */
const SCRIPT = fileURLToPath(new URL('./bare-ledger/apply-one.sql', import.meta.url));
const CLIENTS = [1, scaled(16), scaled(64)];
const ROUNDS = scaled(5);
const BARE_SECONDS = scaled(3);
const CALLS = scaled(2_000);
/** As many connections as the API and the worker each have. */
const POOL_SIZE = 20;

/**
 * Measures calls of one transfer each on one hot prepaid account: the bare SQL function, and the module that
 * calls it.
 */
export async function run(): Promise<void> {
  console.log('PostgreSQL alone, no Temporal');
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-bench-'));
  await chmod(folder, 0o755);
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'pg'),
    port: await freePort(),
    password: 'bench',
  });
  await migrate(postgres.url);
  const orm = await openOrm({
    databaseUrl: postgres.url,
    poolSize: POOL_SIZE,
    role: SERVICE_ROLE,
    onOwnerLogin: () => {},
  });
  const em = orm.em.fork() as Transactor;
  const pgbench = findPgbench();
  const bareName = pgbench === undefined ? 'bare pg clients (no pgbench here)' : 'pgbench -M prepared';
  try {
    await post(em, FUND);
    for (const clients of CLIENTS) {
      console.log(`${clients} at once, one transfer a call, one prepaid account`);
      const bare: number[] = [];
      const direct: Measurement[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const options = { databaseUrl: postgres.url, clients, seconds: BARE_SECONDS };
        bare.push(await (pgbench === undefined ? runBareClients(options) : runPgbench(pgbench, options)));
        direct.push(await measure(CALLS, clients, () => post(em, FEE)));
      }
      report(bareName, bare, direct);
    }
  } finally {
    await orm.close();
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function report(bareName: string, bare: number[], direct: Measurement[]): void {
  console.log(`${`  ${bareName}`.padEnd(44)} ${`${medianNumber(bare).toFixed(0)}/s`.padStart(14)}`);
  console.log(describe('  applyPosting', median(direct)));
  // Each round is compared by itself, since the machine's other work varies.
  const ratios = direct.map((round, index) => round.perSecond / (bare[index] ?? Number.NaN));
  console.log(`  ratio: ${medianNumber(ratios).toFixed(2)} (goal at least 0.8, and at least 1200/s)`);
}

/** A call of the ledger with one transfer on the hot account. */
async function post(em: Transactor, transfer: Posting['transfers'][number]): Promise<void> {
  const operation = { operationId: randomUUID(), partnerId: 'prt_hot', mode: 'test' } as const;
  const { outcome } = await applyPosting(em, { ...operation, transfers: [transfer] });
  if (outcome !== 'applied') throw new Error(`expected "applied", got "${outcome}"`);
}

const FUND = {
  step: 'fund',
  code: 'fund_faucet',
  phase: 'single',
  debit: 'faucet',
  credit: 'prepaid',
  amountCents: 1_000_000_000,
} as const;
const FEE = {
  step: 'fee',
  code: 'fee_transaction',
  phase: 'single',
  debit: 'prepaid',
  credit: 'fee_revenue',
  amountCents: 5,
} as const;

/** The path of pgbench, on PATH or in Debian's folders; undefined if there is none. */
function findPgbench(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return [...folders, ...globSync('/usr/lib/postgresql/*/bin')]
    .map((folder) => join(folder, 'pgbench'))
    .find((path) => existsSync(path));
}

/**
 * Transactions per second of the bare call, prepared, one transfer each, as the application's role. The first
 * second does not count, since every new session plans the function's statements in it.
 */
async function runPgbench(
  pgbench: string,
  options: { databaseUrl: string; clients: number; seconds: number },
): Promise<number> {
  const counted = ['-c', String(options.clients), '-T', String(options.seconds + 1)];
  const { stdout, stderr } = await promisify(execFile)(
    pgbench,
    ['-n', '-M', 'prepared', '-f', SCRIPT, '-j', '1', '-P', '1', ...counted, options.databaseUrl],
    { env: { ...process.env, PGOPTIONS: '-c role=card_issuing_app' } },
  );
  const perSecond = [...stderr.matchAll(/^progress: .*? ([\d.]+) tps/gm)]
    .slice(1)
    .map((line) => Number(line[1]));
  if (perSecond.length === 0 || !/failed transactions: 0 /.test(stdout)) {
    throw new Error(`pgbench failed:\n${stdout}${stderr}`);
  }
  return perSecond.reduce((sum, one) => sum + one, 0) / perSecond.length;
}

/** If there is no pgbench: the same statement in a loop of `pg` clients with nothing around them. */
async function runBareClients(options: {
  databaseUrl: string;
  clients: number;
  seconds: number;
}): Promise<number> {
  const text = await readFile(SCRIPT, 'utf8');
  const clients = Array.from(
    { length: options.clients },
    () => new pg.Client({ connectionString: options.databaseUrl, options: '-c role=card_issuing_app' }),
  );
  for (const client of clients) {
    await client.connect();
    await client.query({ name: 'apply-one', text });
  }
  const startedAt = performance.now();
  let calls = 0;
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() - startedAt < options.seconds * 1_000) {
        await client.query({ name: 'apply-one', text });
        calls++;
      }
    }),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  await Promise.all(clients.map((client) => client.end()));
  return calls / seconds;
}
