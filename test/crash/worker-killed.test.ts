import type { Fault } from './fault.ts';
import { CASES, type CaseName } from './support/cases.ts';
import { inParallel } from './support/in-parallel.ts';
import { killWorkerAt } from './support/kill-worker-at.ts';

const ALL = Object.keys(CASES) as CaseName[];
const BY_HAND: CaseName[] = ['live 47 issued', 'live 47 failed'];
const ACCEPTED: CaseName[] = ['live 41', 'live 43', 'live 45', 'live 46', ...BY_HAND];
const LIVE: CaseName[] = ['live 00', 'live 42', 'live 44', 'live 48', ...ACCEPTED];
/** Those about which the network says yes or no. */
const DECIDED = LIVE.filter((name) => !BY_HAND.includes(name));
/** Those whose first answer is lost. */
const UNANSWERED: CaseName[] = ['live 44', 'live 48'];

/** Every step of issueCard, and the cases that come by it. */
const FAULTS: [Fault, CaseName[]][] = [
  [{ step: 'openIssuance', run: 1, when: 'before' }, ALL],
  [{ step: 'openIssuance', run: 1, when: 'before commit' }, ALL],
  [{ step: 'openIssuance', run: 1, when: 'after commit' }, ALL],
  [{ step: 'openIssuance', run: 1, when: 'after' }, ALL],
  [{ step: 'settleIssuance', run: 1, when: 'before' }, LIVE],
  [{ step: 'settleIssuance', run: 2, when: 'before' }, [...ACCEPTED, 'live 48']],
  [{ step: 'settleIssuance', run: 'accepted', when: 'before commit' }, ACCEPTED],
  [{ step: 'settleIssuance', run: 'accepted', when: 'after commit' }, ACCEPTED],
  [{ step: 'settleIssuance', run: 'accepted', when: 'after' }, ACCEPTED],
  [{ step: 'settleIssuance', run: 'decided', when: 'before commit' }, DECIDED],
  [{ step: 'settleIssuance', run: 'decided', when: 'after commit' }, DECIDED],
  [{ step: 'settleIssuance', run: 'decided', when: 'after' }, DECIDED],
  [{ step: 'issueCard', run: 1, when: 'before' }, LIVE],
  [{ step: 'issueCard', run: 2, when: 'before' }, [...ACCEPTED, 'live 48']],
  [{ step: 'issueCard', run: 'accepted', when: 'after' }, ACCEPTED],
  [{ step: 'issueCard', run: 'decided', when: 'after' }, DECIDED.filter((name) => name !== 'live 44')],
  [{ step: 'lookUpIssuance', run: 1, when: 'before' }, [...UNANSWERED, 'live 47 issued']],
  [{ step: 'lookUpIssuance', run: 1, when: 'after' }, [...UNANSWERED, 'live 47 issued']],
  [{ step: 'flagIssuanceOverdue', run: 1, when: 'before' }, BY_HAND],
  [{ step: 'flagIssuanceOverdue', run: 1, when: 'after' }, BY_HAND],
  [{ step: 'settleIssuanceByHand', run: 1, when: 'before' }, BY_HAND],
  [{ step: 'settleIssuanceByHand', run: 1, when: 'before commit' }, BY_HAND],
  [{ step: 'settleIssuanceByHand', run: 1, when: 'after commit' }, BY_HAND],
  [{ step: 'settleIssuanceByHand', run: 1, when: 'after' }, BY_HAND],
];

describe('a worker killed -9 at a step of issueCard changes no outcome', function () {
  this.timeout(240_000);
  let ends: Promise<void>[];
  before(() => {
    ends = inParallel(
      8,
      FAULTS.map(
        ([fault, cases]) =>
          () =>
            killWorkerAt(fault, cases),
      ),
    );
  });

  FAULTS.forEach(([{ step, run, when }, cases], index) => {
    it(`${when} ${step}, ${typeof run === 'number' ? `run ${run}` : run}, of ${cases.length} cards`, () =>
      ends[index]);
  });
});
