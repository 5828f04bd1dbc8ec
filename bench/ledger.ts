import { randomUUID } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../dev/free-port.ts';
import { startEmbeddedPostgres } from '../dev/postgres/embedded-postgres.ts';
import { applyPosting } from '../ledger/apply-posting.ts';
import type { Posting } from '../ledger/posting.ts';
import { SERVICE_ROLE } from '../platform/db/login.ts';
import { migrate } from '../platform/db/migrate.ts';
import { openOrm } from '../platform/db/orm.ts';
import type { Transactor } from '../platform/db/sql.ts';
import { findPgbench, runBareClients, runPgbench } from './bare-ledger/bare-ledger.ts';
import { describe, type Measurement, measure, median, medianNumber } from './support/measure.ts';
import { scaled } from './support/scale.ts';

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
    await applyPosting(em, funding());
    for (const clients of CLIENTS) {
      console.log(`${clients} at once, one transfer a call, one prepaid account`);
      const bare: number[] = [];
      const direct: Measurement[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const options = { databaseUrl: postgres.url, clients, seconds: BARE_SECONDS };
        bare.push(await (pgbench === undefined ? runBareClients(options) : runPgbench(pgbench, options)));
        direct.push(await measure(CALLS, clients, () => one(em)));
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

async function one(em: Transactor): Promise<void> {
  const { outcome } = await applyPosting(em, {
    operationId: randomUUID(),
    partnerId: 'prt_hot',
    mode: 'test',
    transfers: [
      {
        step: 'fee',
        code: 'fee_transaction',
        phase: 'single',
        debit: 'prepaid',
        credit: 'fee_revenue',
        amountCents: 5,
      },
    ],
  });
  if (outcome !== 'applied') throw new Error(`expected "applied", got "${outcome}"`);
}

function funding(): Posting {
  return {
    operationId: randomUUID(),
    partnerId: 'prt_hot',
    mode: 'test',
    transfers: [
      {
        step: 'fund',
        code: 'fund_faucet',
        phase: 'single',
        debit: 'faucet',
        credit: 'prepaid',
        amountCents: 1_000_000_000,
      },
    ],
  };
}
