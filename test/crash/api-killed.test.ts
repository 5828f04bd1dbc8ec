import assert from 'node:assert/strict';
import { freePort } from '../../dev/free-port.ts';
import type { Child } from '../../dev/process/child.ts';
import type { Config } from '../../platform/config/service.ts';
import { CLAIM_HAS_RESPONSE } from '../../platform/db/notifications.ts';
import { query } from '../../platform/db/sql.ts';
import { prepareIssuance } from '../support/crash/fundings.ts';
import {
  ask,
  askAt,
  assertEnd,
  CASES,
  type Case,
  type Operation,
  untilAnswered,
} from '../support/crash/operations.ts';
import { dieAt, kill, scratchFolder, startApiProcess } from '../support/crash/processes.ts';
import { inParallel } from '../support/in-parallel.ts';
import { assertLedgerClean } from '../support/money.ts';
import { startWatchingProxy, type Watched } from '../support/sockets.ts';
import { type Answer, startTestStack, type TestStack } from '../support/stack.ts';
import { startedWorkflow } from '../support/workflows.ts';

interface OnItsWay {
  temporal?: Watched;
  database?: Watched;
}

/** The call that starts the workflow. */
const START: OnItsWay = { temporal: { from: 'client', text: 'issue-card/' } };
/** That it has an answer. */
const ANSWERED: OnItsWay = { database: { from: 'server', text: CLAIM_HAS_RESPONSE } };
/** An API that runs no first tasks itself. killed-at-each-place.test.ts kills one that does. */
const QUEUEING_API = 'test/support/crash/queueing-api.ts';

/** Runs `test` with a stack whose worker runs only if it is asked to, and an issuance of this case. */
async function withIssuance(
  kind: Case,
  worker: boolean,
  test: (stack: TestStack, issuance: Operation, folder: string) => Promise<void>,
): Promise<void> {
  const folder = scratchFolder();
  const stack = await startTestStack({ cardCreationWaitMs: 30_000, logLevel: 'error' }, { worker });
  try {
    await test(stack, await prepareIssuance(kind, stack), folder);
    await assertLedgerClean(stack);
  } finally {
    await stack.stop();
  }
}

/** Sends the request to an API process that dies of it, and says whether the claim was answered by then. */
async function askUntilKilled(
  stack: TestStack,
  config: Config,
  api: Child,
  issuance: Operation,
): Promise<boolean> {
  await assert.rejects(askAt(`http://${config.host}:${config.port}`, issuance), /fetch failed/);
  assert.equal(await api.exited, 'signal SIGKILL');
  const [claim] = await query<{ answered: boolean }>(
    stack.orm.em.fork(),
    'SELECT response_status IS NOT NULL AS answered FROM idempotency_claim WHERE key = $1',
    [issuance.key],
  );
  assert.ok(claim, 'the API was killed before it claimed the key');
  return claim.answered;
}

const retry = (issuance: Operation): Promise<Answer> => untilAnswered(() => ask(issuance));

async function killApiOnItsWay(
  kind: Case,
  watched: OnItsWay,
  whoGoesOn: 'a retry' | 'the sweep',
): Promise<void> {
  await withIssuance(kind, true, async (stack, issuance, folder) => {
    let api: Child | undefined;
    const killIt = () => {
      if (api !== undefined) process.kill(api.pid, 'SIGKILL');
    };
    const { address = '' } = stack.config.temporal.connectionOptions ?? {};
    const database = new URL(stack.config.databaseUrl);
    const temporalProxy = await startWatchingProxy(address, watched.temporal, killIt);
    const databaseProxy = await startWatchingProxy(database.host, watched.database, killIt);
    database.host = databaseProxy.address;
    const config = {
      ...stack.config,
      port: await freePort(),
      databaseUrl: database.href,
      temporal: { ...stack.config.temporal, connectionOptions: { address: temporalProxy.address } },
    };
    try {
      api = await startApiProcess(config, folder, { file: QUEUEING_API });
      assert.equal(await askUntilKilled(stack, config, api, issuance), watched === ANSWERED);
      if (whoGoesOn === 'the sweep') await (await startedWorkflow(stack)).result();
      await assertEnd(stack, issuance, await retry(issuance));
    } finally {
      if (api !== undefined) await kill(api);
      temporalProxy.stop();
      databaseProxy.stop();
    }
  });
}

/** Kills it while it answers for a worker that isn't there; a worker then comes. */
async function killApiAtCommit(kind: Case, dieAt: string, isAnswered: boolean): Promise<void> {
  await withIssuance(kind, false, async (stack, issuance, folder) => {
    const config = { ...stack.config, port: await freePort(), cardCreationWaitMs: 300 };
    const api = await startApiProcess(config, folder, {
      file: QUEUEING_API,
      execArgv: ['--import', './test/support/crash/die-at-commit.ts'],
      env: { DIE_AT_COMMIT: dieAt },
    });
    try {
      assert.equal(await askUntilKilled(stack, config, api, issuance), isAnswered);
      await stack.startWorker();
      await assertEnd(stack, issuance, await retry(issuance));
    } finally {
      await kill(api);
    }
  });
}

const LIVE_LATER: Case = { ...CASES['live 00'], endings: [{ status: 202, end: 'loaded' }] };

/** A 400 is never replayed, even if the process that should free its key dies first. */
async function killApiBeforeItFreesTheKey(): Promise<void> {
  const kind = { ...CASES['live 00'], amountCents: Number.MAX_SAFE_INTEGER };
  await withIssuance(kind, true, async (stack, issuance, folder) => {
    const { execArgv, env } = dieAt(folder, 'delete from "idempotency_claim"', 'before');
    const config = { ...stack.config, port: await freePort() };
    const api = await startApiProcess(config, folder, {
      file: QUEUEING_API,
      execArgv,
      env,
    });
    try {
      assert.equal(await askUntilKilled(stack, config, api, issuance), true);
      const again = await retry(issuance);
      assert.equal(again.status, 400, again.text);
      assert.equal(again.headers.get('idempotent-replayed'), null);
      const corrected = { ...issuance, body: { ...issuance.body, amount: 10_000 } };
      assert.equal((await ask(corrected)).status, 201);
    } finally {
      await kill(api);
    }
  });
}

const KILLS: [string, () => Promise<void>][] = [
  ...(['live 00', 'live 42'] as const).flatMap((name): typeof KILLS => [
    [
      `between claim and start has one outcome for an amount ending in ${name.slice(-2)}, which a retry gets`,
      () => killApiOnItsWay(CASES[name], START, 'a retry'),
    ],
    [
      `between claim and start has one outcome for an amount ending in ${name.slice(-2)}, although nobody retries`,
      () => killApiOnItsWay(CASES[name], START, 'the sweep'),
    ],
    [
      `between effect and answer has one outcome for an amount ending in ${name.slice(-2)}, which a retry gets`,
      () => killApiOnItsWay(CASES[name], ANSWERED, 'a retry'),
    ],
  ]),
  [
    'before the hold, while no worker runs, has one outcome',
    () => killApiAtCommit(CASES['live 00'], 'before 1', false),
  ],
  [
    'after the hold, while no worker runs, has one outcome',
    () => killApiAtCommit(CASES['live 00'], 'after 1', false),
  ],
  [
    'before the 202, while no worker runs, has one outcome',
    () => killApiAtCommit(CASES['live 00'], 'before 2', false),
  ],
  [
    'after the 202, while no worker runs, has one outcome',
    () => killApiAtCommit(LIVE_LATER, 'after 2', true),
  ],
  ['before it frees the key of a 400 leaves nothing to replay', killApiBeforeItFreesTheKey],
];

describe('a live POST /cards whose API process is killed -9', () => {
  let ends: Promise<void>[];
  before(() => {
    // Not more: while stacks start in this process, connections of the others can take longer than their 5 s.
    ends = inParallel(
      2,
      KILLS.map(([, run]) => run),
    );
  });

  KILLS.forEach(([title], index) => {
    it(title, () => ends[index]);
  });
});
