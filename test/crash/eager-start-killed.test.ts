import assert from 'node:assert/strict';
import { describePlace, type Fault } from '../support/crash/fault.ts';
import { assertHandedOver, withFaultyApi } from '../support/crash/faulty-api.ts';
import { ISSUANCE_STEPS, prepareIssuance, prepareTopUp, TOP_UP_STEPS } from '../support/crash/fundings.ts';
import {
  ask,
  askAt,
  assertEnd,
  CASES,
  type CaseName,
  type Claimed,
  type Operation,
  readClaim,
  untilAnswered,
} from '../support/crash/operations.ts';
import { prepareStatusChange, STATUS_CASES } from '../support/crash/status-changes.ts';
import { prepareWithdrawal, WITHDRAWAL_STEPS } from '../support/crash/withdrawals.ts';
import { inParallel } from '../support/in-parallel.ts';
import type { Answer, TestStack } from '../support/stack.ts';

type Step = 'request' | 'ask' | 'lookUp';
type Prepare = (stack: TestStack) => Promise<Operation>;

const OPENED: CaseName[] = ['live without funds', 'live 00', 'live 42'];
const ASKED: CaseName[] = ['live 00', 'live 41', 'live 42', 'live 44'];
const DECIDED: CaseName[] = ['live 00', 'live 42', 'live 44'];

/** Every place of a first task. */
const FAULTS: [Omit<Fault, 'steps'> & { step: Step }, CaseName[]][] = [
  [{ step: 'request', run: 1, when: 'before' }, OPENED],
  [{ step: 'request', run: 1, when: 'before commit' }, OPENED],
  [{ step: 'request', run: 1, when: 'after commit' }, OPENED],
  [{ step: 'request', run: 1, when: 'after' }, OPENED],
  [{ step: 'ask', run: 1, when: 'before' }, ASKED],
  [{ step: 'ask', run: 'decided', when: 'after' }, ['live 00', 'live 42']],
  [{ step: 'lookUp', run: 1, when: 'before' }, ['live 44']],
  [{ step: 'request', run: 'accepted', when: 'before commit' }, ['live 41']],
  [{ step: 'request', run: 'accepted', when: 'after commit' }, ['live 41']],
  [{ step: 'request', run: 'decided', when: 'before commit' }, DECIDED],
  [{ step: 'request', run: 'decided', when: 'after commit' }, DECIDED],
  [{ step: 'request', run: 'decided', when: 'after' }, DECIDED],
];

const STEPS_OF_STATUS_CHANGES: Fault[] = [
  { steps: ['requestStatusChange'], run: 1, when: 'after commit' },
  { steps: ['changeCardStatus'], run: 1, when: 'after' },
  { steps: ['requestStatusChange'], run: 'decided', when: 'after commit' },
];

function killApiAt(fault: Fault, operations: Prepare[]): Promise<void> {
  return withFaultyApi(fault, operations, async ({ stack, prepared, api, origin, arm, untilStanding }) => {
    arm();
    // What was answered before the process died stays answered; the others get no response.
    const heard = Promise.all(
      prepared.map((operation) => askAt(origin, operation).catch((error: unknown) => error)),
    );
    const standing = await untilStanding();
    assert.equal(await api.exited, 'signal SIGKILL');
    const claims = await Promise.all(prepared.map((operation) => readClaim(stack, operation)));
    assert.deepEqual(standing.sort(), claims.map(({ id }) => id).sort());

    const firsts = await heard;
    await Promise.all(
      prepared.map(async (operation, index) => {
        const claim = claims[index] as Claimed;
        const again = await untilAnswered(() => ask(operation));
        const first = firsts[index];
        if (!(first instanceof Error)) assert.equal((first as Answer).text, again.text);
        await assertEnd(stack, operation, again);
        await assertHandedOver(stack.client.workflow.getHandle(operation.workflowIdOf(claim)));
      }),
    );
  });
}

const KILLS: [string, () => Promise<void>][] = [
  ...FAULTS.map(([{ step, run, when }, cases]): (typeof KILLS)[number] => {
    const steps = [ISSUANCE_STEPS[step], TOP_UP_STEPS[step], WITHDRAWAL_STEPS[step]];
    const operations = cases.flatMap((name): Prepare[] => [
      (stack) => prepareIssuance(CASES[name], stack),
      (stack) => prepareTopUp(CASES[name], stack),
      (stack) => prepareWithdrawal(CASES[name], stack),
    ]);
    const title = `completes all ${operations.length} operations when the API is killed -9 ${describePlace(step, { run, when })}`;
    return [title, () => killApiAt({ steps, run, when }, operations)];
  }),
  ...STEPS_OF_STATUS_CHANGES.map((fault): (typeof KILLS)[number] => [
    `completes a freeze when the API is killed -9 ${describePlace(fault.steps[0] ?? '', fault)}`,
    () => killApiAt(fault, [(stack) => prepareStatusChange(STATUS_CASES['live freeze'], stack)]),
  ]),
];

describe('a workflow whose first task runs in an API process', function () {
  this.timeout(240_000);
  let ends: Promise<void>[];
  before(() => {
    ends = inParallel(
      2,
      KILLS.map(([, run]) => run),
    );
  });

  KILLS.forEach(([title], index) => {
    it(title, () => ends[index]);
  });
});

describe('an API process that is frozen in the first task of a workflow', function () {
  this.timeout(240_000);

  for (const when of ['before commit', 'after'] as const) {
    it(`delays nobody when it is frozen ${when === 'after' ? 'after the hold' : 'before the commit of the hold'}, and gives the same answer when it resumes`, async () => {
      const fault = { steps: ['requestIssuance'], run: 1, when, signal: 'SIGSTOP' } as const;
      const operations = [(stack: TestStack) => prepareIssuance(CASES['live 00'], stack)];
      await withFaultyApi(fault, operations, async ({ stack, prepared, api, origin, arm, untilStanding }) => {
        const [issuance] = prepared as [Operation];
        arm();
        const asked = askAt(origin, issuance);
        await untilStanding();
        const claim = await readClaim(stack, issuance);
        const again = await untilAnswered(() => ask(issuance));
        await assertEnd(stack, issuance, again);
        await assertHandedOver(stack.client.workflow.getHandle(issuance.workflowIdOf(claim)));

        process.kill(api.pid, 'SIGCONT');
        const late = await asked;
        assert.deepEqual([late.status, late.text], [again.status, again.text]);
        await assertEnd(stack, issuance, again);
      });
    });
  }
});
