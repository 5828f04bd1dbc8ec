import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../config.ts';
import { query } from '../../db/sql.ts';
import { freePort } from '../../dev/free-port.ts';
import type { Child } from '../../dev/process/start-child.ts';
import { type Answer, startTestStack, type TestStack } from '../support/stack.ts';
import { assertLedgerClean } from '../workflows/support/money.ts';
import { startedWorkflow } from '../workflows/support/started-workflow.ts';
import { CASES, type Case } from './support/cases.ts';
import { inParallel } from './support/in-parallel.ts';
import { ask, askAt, assertEnd, type Issuance, prepareIssuance } from './support/issuances.ts';
import { kill, scratchFolder, startApiProcess } from './support/processes.ts';
import { startWatchingProxy, type Watched } from './support/watching-proxy.ts';

/** The call that starts the workflow, on its way there; and its answer, on its way back. */
const START: Watched = { from: 'client', text: 'issue-card/' };
const STARTED: Watched = { from: 'server', text: 'claim_' };

/** Runs `test` with a stack whose worker runs only if it is asked to, and an issuance of this case. */
async function withIssuance(
  kind: Case,
  worker: boolean,
  test: (stack: TestStack, issuance: Issuance, folder: string) => Promise<void>,
): Promise<void> {
  const folder = scratchFolder();
  const stack = await startTestStack({ cardCreationWaitMs: 30_000, logLevel: 'error' }, { worker });
  try {
    await test(stack, await prepareIssuance(stack, kind), folder);
    await assertLedgerClean(stack);
  } finally {
    await stack.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Sends the request to an API process that dies of it, and says whether the claim was answered by then. */
async function askUntilKilled(
  stack: TestStack,
  config: Config,
  api: Child,
  issuance: Issuance,
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

/** Retries at the API that is left, until the request is no longer taken for one that still runs. */
async function retry(issuance: Issuance): Promise<Answer> {
  for (;;) {
    const answer = await ask(issuance);
    if (answer.json.error?.code !== 'idempotency_in_flight') return answer;
    await sleep(200);
  }
}

async function killApiOnItsWay(
  kind: Case,
  watched: Watched,
  whoGoesOn: 'a retry' | 'the sweep',
): Promise<void> {
  await withIssuance(kind, true, async (stack, issuance, folder) => {
    let api: Child | undefined;
    const { address = '' } = stack.config.temporal.connectionOptions ?? {};
    const proxy = await startWatchingProxy(address, watched, () => {
      if (api !== undefined) process.kill(api.pid, 'SIGKILL');
    });
    const config = {
      ...stack.config,
      port: await freePort(),
      temporal: { ...stack.config.temporal, connectionOptions: { address: proxy.address } },
    };
    try {
      api = await startApiProcess(config, folder);
      assert.equal(await askUntilKilled(stack, config, api, issuance), watched === STARTED);
      if (whoGoesOn === 'the sweep') await (await startedWorkflow(stack)).result();
      await assertEnd(stack, issuance, await retry(issuance));
    } finally {
      if (api !== undefined) await kill(api);
      proxy.stop();
    }
  });
}

/** Kills it while it answers for a worker that isn't there; a worker then comes. */
async function killApiAtCommit(kind: Case, dieAt: string, isAnswered: boolean): Promise<void> {
  await withIssuance(kind, false, async (stack, issuance, folder) => {
    const config = { ...stack.config, port: await freePort(), cardCreationWaitMs: 300 };
    const api = await startApiProcess(config, folder, {
      execArgv: ['--import', './test/crash/die-at-commit.ts'],
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

const LIVE_LATER: Case = { ...CASES['live 00'], endings: [{ status: 202, card: 'active' }] };

const KILLS: [string, () => Promise<void>][] = [
  ...(['test', 'live 00', 'live 42'] as const).flatMap((name): typeof KILLS => [
    [`${name}: between claim and start, a retry`, () => killApiOnItsWay(CASES[name], START, 'a retry')],
    [`${name}: between claim and start, no retry`, () => killApiOnItsWay(CASES[name], START, 'the sweep')],
    [`${name}: between effect and answer, a retry`, () => killApiOnItsWay(CASES[name], STARTED, 'a retry')],
  ]),
  ['test: no worker, before the commit', () => killApiAtCommit(CASES.test, 'before 1', false)],
  ['test: no worker, after the commit', () => killApiAtCommit(CASES.test, 'after 1', true)],
  ['live 00: no worker, before the hold', () => killApiAtCommit(CASES['live 00'], 'before 1', false)],
  ['live 00: no worker, after the hold', () => killApiAtCommit(CASES['live 00'], 'after 1', false)],
  ['live 00: no worker, before the 202', () => killApiAtCommit(CASES['live 00'], 'before 2', false)],
  ['live 00: no worker, after the 202', () => killApiAtCommit(LIVE_LATER, 'after 2', true)],
];

describe('an API killed -9 in the middle of POST /cards: one card, one answer', function () {
  this.timeout(240_000);
  let ends: Promise<void>[];
  before(() => {
    ends = inParallel(
      5,
      KILLS.map(([, run]) => run),
    );
  });

  KILLS.forEach(([title], index) => {
    it(title, () => ends[index]);
  });
});
