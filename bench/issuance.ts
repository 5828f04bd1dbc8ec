import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Client, Connection, WithStartWorkflowOperation } from '@temporalio/client';
import { Pool } from 'undici';
import { adjustBalance } from '../commands/adjust-balance.ts';
import { createApiKey } from '../commands/create-api-key.ts';
import { negotiateLimits } from '../commands/negotiate-limits.ts';
import type { Mode } from '../domain/mode.ts';
import { createBareIssuance } from './bare-issuance/bare-issuance.ts';
import { done } from './empty-workflow/workflow.ts';
import { describe, type Measurement, measure } from './support/measure.ts';
import { median, middleOf } from './support/median.ts';
import { type BenchService, startService } from './support/start-service.ts';

const ROUNDS = 5;

/** What POST /cards is held against, and how near it should come. */
interface Comparison {
  floor: string;
  mode: Mode;
  execute(): Promise<void>;
  /** In flight, and how many calls a round has. */
  loads: [number, number][];
  goals: string;
}

/**
 * POST /cards over the whole HTTP path: in live mode, on the simulated network, beside update-with-start of an empty
 * workflow on the same server; in test mode beside the bare SQL of the same writes. Rounds alternate and each is
 * compared by itself, so that what else the machine does hits both; the median is printed.
 */
export async function run(): Promise<void> {
  const service = await startService({ worker: true });
  const empty = await startEmptyWorkflows(service);
  const bare = createBareIssuance(service.databaseUrl, service.partnerId, 20);
  const cards = await fundedCardCreation(service);
  const comparisons: Comparison[] = [
    {
      floor: 'empty workflow',
      mode: 'live',
      execute: empty.execute,
      loads: [
        [1, 100],
        [20, 400],
      ],
      goals: 'a live card asks the network on top of it',
    },
    {
      floor: 'bare SQL',
      mode: 'test',
      execute: bare.issue,
      loads: [
        [1, 400],
        [20, 1_500],
      ],
      goals: 'goals: throughput at least 0.6, p50 of one in flight at most 8 ms',
    },
  ];
  try {
    for (const comparison of comparisons) await compare(comparison, () => cards.create(comparison.mode));
  } finally {
    await empty.stop();
    await bare.stop();
    await cards.stop();
    await service.stop();
  }
}

async function compare(
  { floor, mode, execute, loads, goals }: Comparison,
  create: () => Promise<void>,
): Promise<void> {
  for (const [inFlight, count] of loads) {
    const rounds: { floor: Measurement; cards: Measurement }[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      rounds.push({
        floor: await measure(count, inFlight, execute),
        cards: await measure(count, inFlight, create),
      });
    }
    console.log(describe(`${floor}, ${inFlight} in flight`, median(rounds.map((round) => round.floor))));
    console.log(
      describe(`POST /cards, ${mode}, ${inFlight} in flight`, median(rounds.map((round) => round.cards))),
    );
    const p50 = middleOf(rounds.map((round) => round.cards.p50Ms / round.floor.p50Ms));
    const throughput = middleOf(rounds.map((round) => round.cards.perSecond / round.floor.perSecond));
    console.log(`ratios: p50 ${p50.toFixed(2)}, throughput ${throughput.toFixed(2)} (${goals})`);
  }
}

async function startEmptyWorkflows({ temporal }: BenchService) {
  const taskQueue = `bench-empty-${randomUUID()}`;
  const entry = fileURLToPath(new URL('./empty-workflow/worker.ts', import.meta.url));
  const worker = spawn(process.execPath, [entry, temporal.address, temporal.namespace, taskQueue], {
    stdio: 'ignore',
  });
  const connection = await Connection.connect({ address: temporal.address });
  const client = new Client({ connection, namespace: temporal.namespace });
  return {
    execute: async () => {
      const startWorkflowOperation = new WithStartWorkflowOperation('emptyWorkflow', {
        taskQueue,
        workflowId: `bench-empty/${randomUUID()}`,
        workflowIdConflictPolicy: 'USE_EXISTING',
      });
      await client.workflow.executeUpdateWithStart(done, { startWorkflowOperation });
    },
    stop: async () => {
      await connection.close();
      worker.kill('SIGTERM');
      await once(worker, 'exit');
    },
  };
}

async function fundedCardCreation({ origin, orm, ring, partnerId, testKey }: BenchService) {
  const operator = { orm, ring, actor: 'bench' };
  const { key: liveKey } = await createApiKey(operator, { partnerId, mode: 'live', name: null });
  const keys = { test: testKey, live: liveKey };
  await negotiateLimits(operator, partnerId, {
    maxOpenCards: 1_000_000,
    maxIssuedPerDayCents: 1_000_000_000,
  });
  for (const mode of ['test', 'live'] as const) {
    const funds = { partnerId, mode, amountCents: 1_000_000_000, reason: 'measuring', key: null };
    await adjustBalance(operator, funds);
  }
  const pool = new Pool(origin, { connections: 20 });
  return {
    create: async (mode: Mode) => {
      const answer = await pool.request({
        method: 'POST',
        path: '/v1/cards',
        headers: {
          authorization: `Bearer ${keys[mode]}`,
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
        },
        body: JSON.stringify({ amount: 1_000, external_ref: randomUUID(), cardholder_first_name: 'Ada' }),
      });
      const text = await answer.body.text();
      if (answer.statusCode !== 201) throw new Error(`POST /cards answered ${answer.statusCode}: ${text}`);
    },
    stop: () => pool.close(),
  };
}
