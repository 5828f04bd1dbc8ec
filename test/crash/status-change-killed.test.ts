import { describePlace, type Fault } from '../support/crash/fault.ts';
import { killWorkerAt } from '../support/crash/kill-worker-at.ts';
import {
  prepareOpposites,
  prepareStatusChange,
  STATUS_CASES,
  type StatusCaseName,
} from '../support/crash/status-changes.ts';
import { inParallel } from '../support/in-parallel.ts';
import type { TestStack } from '../support/stack.ts';

const ALL = Object.keys(STATUS_CASES) as StatusCaseName[];
/** Those that the network is asked for. */
const ASKED: StatusCaseName[] = ['live freeze', 'live unfreeze', 'live block', 'live refused there'];

/** Every step of changeCardStatus, and the cases that come by it. */
const FAULTS: [Omit<Fault, 'steps'> & { step: string }, StatusCaseName[]][] = [
  [{ step: 'requestStatusChange', run: 1, when: 'before' }, ALL],
  [{ step: 'requestStatusChange', run: 1, when: 'before commit' }, ALL],
  [{ step: 'requestStatusChange', run: 1, when: 'after commit' }, ALL],
  [{ step: 'changeCardStatus', run: 1, when: 'before' }, ASKED],
  [{ step: 'changeCardStatus', run: 'decided', when: 'after' }, ASKED],
  [{ step: 'requestStatusChange', run: 'decided', when: 'before commit' }, ASKED],
  [{ step: 'requestStatusChange', run: 'decided', when: 'after commit' }, ASKED],
  [{ step: 'requestStatusChange', run: 1, when: 'after' }, ALL],
];

const AROUND = ['before', 'after'] as const;

describe('a worker that runs changeCardStatus', function () {
  this.timeout(240_000);
  let ends: Promise<void>[];
  before(() => {
    ends = inParallel(2, [
      ...FAULTS.map(([{ step, run, when }, cases]) => () => {
        const operations = cases.map(
          (name) => (stack: TestStack) => prepareStatusChange(STATUS_CASES[name], stack),
        );
        return killWorkerAt({ steps: [step], run, when }, operations);
      }),
      ...AROUND.map(
        (when) => () => killWorkerAt({ steps: ['changeCardStatus'], run: 1, when }, [prepareOpposites]),
      ),
    ]);
  });

  FAULTS.forEach(([{ step, run, when }, cases], index) => {
    it(`is replaced by another, which completes all ${cases.length} changes, when it is killed -9 ${describePlace(step, { run, when })}`, () =>
      ends[index]);
  });

  AROUND.forEach((when, index) => {
    it(`is replaced by another, which completes seven opposite changes in one order, when it is killed -9 ${when} the network is asked for one`, () =>
      ends[FAULTS.length + index]);
  });
});
