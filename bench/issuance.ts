import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Client, Connection, WithStartWorkflowOperation } from '@temporalio/client';
import { Pool } from 'undici';
import { done } from './empty-workflow/workflow.ts';
import { describe, type Measurement, measure } from './support/measure.ts';
import { median, middleOf } from './support/median.ts';
import { type BenchService, startService } from './support/start-service.ts';

const ROUNDS = 5;

/**
 * POST /cards in test mode, over the whole HTTP path, beside update-with-start of an empty workflow on the same server.
 * Rounds alternate and each is compared by itself, so that what else the machine does hits both; the median is printed.
 */
export async function run(): Promise<void> {
  const service = await startService({ worker: true });
  const empty = await startEmptyWorkflows(service);
  const cards = await fundedCardCreation(service);
  try {
    for (const [inFlight, count] of [
      [1, 150],
      [20, 600],
    ] as const) {
      const rounds: { floor: Measurement; cards: Measurement }[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        rounds.push({
          floor: await measure(count, inFlight, empty.execute),
          cards: await measure(count, inFlight, cards.create),
        });
      }
      console.log(
        describe(`empty workflow, ${inFlight} in flight`, median(rounds.map((round) => round.floor))),
      );
      console.log(describe(`POST /cards, ${inFlight} in flight`, median(rounds.map((round) => round.cards))));
      const p50 = middleOf(rounds.map((round) => round.cards.p50Ms / round.floor.p50Ms));
      const throughput = middleOf(rounds.map((round) => round.cards.perSecond / round.floor.perSecond));
      console.log(
        `ratios: p50 ${p50.toFixed(2)} (goal at most 1.3), throughput ${throughput.toFixed(2)} (goal at least 0.7)`,
      );
    }
  } finally {
    await empty.stop();
    await cards.stop();
    await service.stop();
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

async function fundedCardCreation({ origin, testKey }: BenchService) {
  const pool = new Pool(origin, { connections: 20 });
  const post = async (path: string, body: object) => {
    const answer = await pool.request({
      method: 'POST',
      path: `/v1${path}`,
      headers: {
        authorization: `Bearer ${testKey}`,
        'content-type': 'application/json',
        'idempotency-key': randomUUID(),
      },
      body: JSON.stringify(body),
    });
    const text = await answer.body.text();
    if (answer.statusCode !== 201) throw new Error(`${path} answered ${answer.statusCode}: ${text}`);
  };
  for (let i = 0; i < 20; i++) await post('/test/credit', { amount: 10_000_000 });
  return {
    create: () => post('/cards', { amount: 1_000, external_ref: randomUUID(), cardholder_first_name: 'Ada' }),
    stop: () => pool.close(),
  };
}
