import { describePlace, type Fault } from '../support/crash/fault.ts';
import { ISSUANCE_STEPS, prepareIssuance, prepareTopUp, TOP_UP_STEPS } from '../support/crash/fundings.ts';
import { killWorkerAt } from '../support/crash/kill-worker-at.ts';
import { CASES, type CaseName } from '../support/crash/operations.ts';
import { prepareWithdrawal, WITHDRAWAL_STEPS } from '../support/crash/withdrawals.ts';
import { inParallel } from '../support/in-parallel.ts';
import type { TestStack } from '../support/stack.ts';

type Step = keyof typeof ISSUANCE_STEPS;

const BY_HAND: CaseName[] = ['live 47 yes', 'live 47 no'];
const ACCEPTED: CaseName[] = ['live 41', 'live 43', 'live 45', 'live 46', ...BY_HAND];
const LIVE: CaseName[] = ['live 00', 'live 42', 'live 44', 'live 48', ...ACCEPTED];
/** All that differ before the network is asked, and some of the rest: each that stands at a commit keeps a connection. */
const OPENED: CaseName[] = [
  'live without funds',
  'live 00',
  'live 42',
  'live 44',
  'live 47 yes',
  'live 47 no',
  'live 48',
];
/** Those about which the network says yes or no. */
const DECIDED = LIVE.filter((name) => !BY_HAND.includes(name));
/** Those whose first answer is lost. */
const UNANSWERED: CaseName[] = ['live 44', 'live 48'];
/** Before a decision by hand is applied, the operation is looked up, in case the network has an answer after all. */
const LOOKED_UP: CaseName[] = [...UNANSWERED, ...BY_HAND];

/** Every step of issueCard, topUpCard and withdrawFromCard, and the cases that come by it. */
const FAULTS: [Omit<Fault, 'steps'> & { step: Step }, CaseName[]][] = [
  [{ step: 'request', run: 1, when: 'before' }, OPENED],
  [{ step: 'request', run: 1, when: 'before commit' }, OPENED],
  [{ step: 'request', run: 1, when: 'after commit' }, OPENED],
  [{ step: 'request', run: 1, when: 'after' }, OPENED],
  [{ step: 'request', run: 2, when: 'before' }, [...ACCEPTED, 'live 48']],
  [{ step: 'request', run: 'accepted', when: 'before commit' }, ACCEPTED],
  [{ step: 'request', run: 'accepted', when: 'after commit' }, ACCEPTED],
  [{ step: 'request', run: 'accepted', when: 'after' }, ACCEPTED],
  [{ step: 'request', run: 'decided', when: 'before commit' }, DECIDED],
  [{ step: 'request', run: 'decided', when: 'after commit' }, DECIDED],
  [{ step: 'request', run: 'decided', when: 'after' }, DECIDED],
  [{ step: 'ask', run: 1, when: 'before' }, LIVE],
  [{ step: 'ask', run: 2, when: 'before' }, [...ACCEPTED, 'live 48']],
  [{ step: 'ask', run: 'accepted', when: 'after' }, ACCEPTED],
  [{ step: 'ask', run: 'decided', when: 'after' }, DECIDED.filter((name) => name !== 'live 44')],
  [{ step: 'lookUp', run: 1, when: 'before' }, LOOKED_UP],
  [{ step: 'lookUp', run: 1, when: 'after' }, LOOKED_UP],
  [{ step: 'flagOverdue', run: 1, when: 'before' }, BY_HAND],
  [{ step: 'flagOverdue', run: 1, when: 'after' }, BY_HAND],
  [{ step: 'resolve', run: 1, when: 'before' }, BY_HAND],
  [{ step: 'resolve', run: 1, when: 'before commit' }, BY_HAND],
  [{ step: 'resolve', run: 1, when: 'after commit' }, BY_HAND],
  [{ step: 'resolve', run: 1, when: 'after' }, BY_HAND],
];

const fundings = (cases: CaseName[]) => [
  ...cases.map((name) => (stack: TestStack) => prepareIssuance(CASES[name], stack)),
  ...cases.map((name) => (stack: TestStack) => prepareTopUp(CASES[name], stack)),
];

const withdrawals = (cases: CaseName[]) =>
  cases.map((name) => (stack: TestStack) => prepareWithdrawal(CASES[name], stack));

describe('a worker that runs issueCard, topUpCard and withdrawFromCard', function () {
  this.timeout(240_000);
  let ends: Promise<void>[];
  before(() => {
    ends = inParallel(
      2,
      FAULTS.map(([{ step, run, when }, cases]) => async () => {
        const place = { run, when };
        // A worker of their own for withdrawals: those that stand at a commit keep a connection each, and it has 22.
        await killWorkerAt({ steps: [ISSUANCE_STEPS[step], TOP_UP_STEPS[step]], ...place }, fundings(cases));
        await killWorkerAt({ steps: [WITHDRAWAL_STEPS[step]], ...place }, withdrawals(cases));
      }),
    );
  });

  FAULTS.forEach(([{ step, run, when }, cases], index) => {
    const count = 3 * cases.length;
    it(`is replaced by another, which completes all ${count} operations, when it is killed -9 ${describePlace(step, { run, when })}`, () =>
      ends[index]);
  });
});
