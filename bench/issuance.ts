import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Client, Connection, WithStartWorkflowOperation } from '@temporalio/client';
import { Pool } from 'undici';
import type { Mode } from '../domain/mode.ts';
import { issueCardWorkflowId } from '../workflows/messages.ts';
import { createBareIssuance } from './bare-issuance/bare-issuance.ts';
import { createEagerStarts } from './empty-workflow/eager-starts.ts';
import { done } from './empty-workflow/workflow.ts';
import { type Account, createCard, fundedAccount } from './support/accounts.ts';
import { describe, measure, measureInTurn, median, printedRatio } from './support/measure.ts';
import { type BenchService, startService, until } from './support/service.ts';

const ROUNDS = 5;
const ACCOUNTS = 50;

/** What POST /cards is compared with, and how close it should come. */
interface Floor {
  name: string;
  goals: string;
  execute(): Promise<void>;
}

/** POST /cards for some accounts in turn. */
interface Comparison {
  name: string;
  floors: Floor[];
  create(): Promise<void>;
  /** Pairs of the calls in flight and the calls in a round. */
  loads: [number, number][];
  /** Calls before the first round: code that V8 has not compiled yet costs a third more. */
  warmUp: number;
}

/**
 * Measures POST /cards over the whole HTTP path. In live mode, on the simulated network, it is compared with
 * update-with-start of an empty workflow and with an eager start of a workflow that only asks the network; in
 * test mode, with bare SQL of the same writes. Rounds alternate and each is compared by itself, so that other
 * work of the machine affects all alike; the median is printed.
 */
export async function run(): Promise<void> {
  const service = await startService({ worker: true });
  const updates = await startUpdates(service);
  const eager = await createEagerStarts(service);
  const bare = createBareIssuance(service.databaseUrl, 20);
  const hot = await fundedAccount(service);
  const accounts = [hot];
  while (accounts.length < ACCOUNTS) accounts.push(await fundedAccount(service));
  const pool = new Pool(service.origin, { connections: 20 });
  const createInTurn = (mode: Mode, of: Account[]) =>
    inTurn(of, (account) => createCard(pool, mode, account));
  const bareFloor = (of: Account[]): Floor => ({
    name: 'bare SQL',
    goals: 'goals: throughput at least 0.6, p50 of one in flight at most 8 ms',
    execute: inTurn(of, ({ partnerId }) => bare.issue(partnerId)),
  });
  const testLoads: Comparison['loads'] = [
    [1, 400],
    [20, 1_500],
  ];
  const comparisons: Comparison[] = [
    {
      name: 'live',
      floors: [
        {
          name: 'update-with-start, empty',
          goals: 'goals: p50 at most 1.74 and 1.55, throughput at least 0.92 and 0.70, by what was before',
          execute: updates.execute,
        },
        {
          name: 'eager start that asks the network',
          goals: 'goals: p50 at most 1.3, throughput at least 0.7',
          execute: eager.execute,
        },
      ],
      create: createInTurn('live', [hot]),
      loads: [
        [1, 100],
        [20, 400],
      ],
      warmUp: 600,
    },
    {
      name: 'test, one account',
      floors: [bareFloor([hot])],
      create: createInTurn('test', [hot]),
      loads: testLoads,
      warmUp: 3_000,
    },
    {
      name: `test, ${ACCOUNTS} accounts`,
      floors: [bareFloor(accounts)],
      create: createInTurn('test', accounts),
      loads: testLoads,
      warmUp: 3_000,
    },
  ];
  try {
    await until('live work is started eagerly', () => isStartedEagerly(service, pool, hot));
    for (const comparison of comparisons) await compare(comparison);
  } finally {
    await updates.stop();
    await eager.stop();
    await bare.stop();
    await pool.close();
    await service.stop();
  }
}

async function compare({ name, floors, create, loads, warmUp }: Comparison): Promise<void> {
  for (const work of [create, ...floors.map(({ execute }) => execute)]) {
    await measure(warmUp, 4, work);
  }
  for (const [inFlight, count] of loads) {
    const works = { ...Object.fromEntries(floors.map((floor) => [floor.name, floor.execute])), create };
    const measured = await measureInTurn<string>(works, { rounds: ROUNDS, count, inFlight });
    const cards = measured.create ?? [];
    console.log(describe(`POST /cards, ${name}, ${inFlight} in flight`, median(cards)));
    for (const floor of floors) {
      const bare = measured[floor.name] ?? [];
      const [p50, throughput] = [printedRatio(cards, bare, 'p50Ms'), printedRatio(cards, bare, 'perSecond')];
      console.log(describe(`  ${floor.name}`, median(bare)));
      console.log(`  ratios: p50 ${p50}, throughput ${throughput} (${floor.goals})`);
    }
  }
}

/** Calls `work` with one item after the other, over and over. */
function inTurn<T>(of: readonly T[], work: (one: T) => Promise<unknown>): () => Promise<void> {
  let next = 0;
  return async () => {
    await work(of[next++ % of.length] as T);
  };
}

async function startUpdates({ temporal }: BenchService) {
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

/**
 * Whether the API process runs its workflows' first tasks yet: its hosted worker starts after its first
 * answers.
 */
async function isStartedEagerly({ temporal }: BenchService, pool: Pool, account: Account): Promise<boolean> {
  const workflowId = issueCardWorkflowId(await createCard(pool, 'live', account));
  const connection = await Connection.connect({ address: temporal.address });
  try {
    const client = new Client({ connection, namespace: temporal.namespace });
    const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
    return (
      events?.some((event) => event.workflowTaskStartedEventAttributes?.identity?.startsWith('api-')) ?? false
    );
  } finally {
    await connection.close();
  }
}
