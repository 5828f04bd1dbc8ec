import type { TestStack } from '../stack.ts';
import type { Fault } from './fault.ts';
import { ISSUANCE_STEPS, prepareIssuance, prepareTransfer, TRANSFER_STEPS } from './fundings.ts';
import type { Standing } from './kill-at-places.ts';
import { CASES, type CaseName, type Prepare } from './operations.ts';
import {
  prepareOpposites,
  prepareStatusChange,
  STATUS_CASES,
  type StatusCaseName,
} from './status-changes.ts';

type Step = keyof typeof ISSUANCE_STEPS;
type Place = Omit<Fault, 'step'> & { step: Step };

/** Issuances, top-ups and withdrawals take the same steps, each with names of its own. */
const KINDS: { steps: Record<Step, string>; prepare: Prepare }[] = [
  { steps: ISSUANCE_STEPS, prepare: prepareIssuance },
  { steps: TRANSFER_STEPS, prepare: prepareTransfer('topup') },
  { steps: TRANSFER_STEPS, prepare: prepareTransfer('withdrawal') },
];

const BY_HAND: CaseName[] = ['live 47 yes', 'live 47 no'];
const ACCEPTED: CaseName[] = ['live 41', 'live 43', 'live 45', 'live 46', ...BY_HAND];
const LIVE: CaseName[] = ['live 00', 'live 42', 'live 44', 'live 48', ...ACCEPTED];
const OPENED: CaseName[] = ['live without funds', ...LIVE];
/** Those about which the network says yes or no. */
const DECIDED = LIVE.filter((name) => !BY_HAND.includes(name));
/** Before a decision by hand is applied, the operation is looked up, in case the network has an answer after all. */
const LOOKED_UP: CaseName[] = ['live 44', 'live 48', ...BY_HAND];

/** Every step of issueCard, topUpCard and withdrawFromCard, and the cases that come by it. */
const PLACES: [Place, CaseName[]][] = [
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

/** Every place of the first task, in which the API's own worker runs them. */
const FIRST_PLACES: [Place, CaseName[]][] = [
  [{ step: 'request', run: 1, when: 'before' }, ['live without funds', 'live 00', 'live 42']],
  [{ step: 'request', run: 1, when: 'before commit' }, ['live without funds', 'live 00', 'live 42']],
  [{ step: 'request', run: 1, when: 'after commit' }, ['live without funds', 'live 00', 'live 42']],
  [{ step: 'request', run: 1, when: 'after' }, ['live without funds', 'live 00', 'live 42']],
  [{ step: 'ask', run: 1, when: 'before' }, ['live 00', 'live 41', 'live 42', 'live 44']],
  [{ step: 'ask', run: 'decided', when: 'after' }, ['live 00', 'live 42']],
  [{ step: 'lookUp', run: 1, when: 'before' }, ['live 44']],
  [{ step: 'request', run: 'accepted', when: 'before commit' }, ['live 41']],
  [{ step: 'request', run: 'accepted', when: 'after commit' }, ['live 41']],
  [{ step: 'request', run: 'decided', when: 'before commit' }, ['live 00', 'live 42', 'live 44']],
  [{ step: 'request', run: 'decided', when: 'after commit' }, ['live 00', 'live 42', 'live 44']],
  [{ step: 'request', run: 'decided', when: 'after' }, ['live 00', 'live 42', 'live 44']],
];

const ALL_CHANGES = Object.keys(STATUS_CASES) as StatusCaseName[];
/** Those that the network is asked for. */
const ASKED: StatusCaseName[] = ['live freeze', 'live unfreeze', 'live block', 'live refused there'];

/** Every step of changeCardStatus, and the cases that come by it. */
const STATUS_PLACES: [Fault, StatusCaseName[]][] = [
  [{ step: 'requestStatusChange', run: 1, when: 'before' }, ALL_CHANGES],
  [{ step: 'requestStatusChange', run: 1, when: 'before commit' }, ALL_CHANGES],
  [{ step: 'requestStatusChange', run: 1, when: 'after commit' }, ALL_CHANGES],
  [{ step: 'requestStatusChange', run: 1, when: 'after' }, ALL_CHANGES],
  [{ step: 'changeCardStatus', run: 1, when: 'before' }, ASKED],
  [{ step: 'changeCardStatus', run: 'decided', when: 'after' }, ASKED],
  [{ step: 'requestStatusChange', run: 'decided', when: 'before commit' }, ASKED],
  [{ step: 'requestStatusChange', run: 'decided', when: 'after commit' }, ASKED],
];

/** A status change while others of the same card wait for it. */
const OPPOSITES: Standing[] = (['before', 'after'] as const).map((when) => ({
  fault: { step: 'changeCardStatus', run: 1, when },
  prepare: prepareOpposites,
}));

/**
 * What stands where in a worker that is killed.
 * @param everyCase whether each place has all of its cases; else it has one, and they take turns, so that each is somewhere
 */
export const workerPlaces = ({ everyCase }: { everyCase: boolean }): Standing[] => [
  ...standings(PLACES, everyCase),
  ...STATUS_PLACES.flatMap(([fault, names], nth) =>
    (everyCase ? names : inTurn(names, nth)).map((name) => ({
      fault,
      prepare: (stack: TestStack) => prepareStatusChange(STATUS_CASES[name], stack),
    })),
  ),
  ...OPPOSITES,
];

/** The same in an API that is killed in first tasks. */
export const apiPlaces = ({ everyCase }: { everyCase: boolean }): Standing[] => [
  ...standings(FIRST_PLACES, everyCase),
  ...STATUS_PLACES.filter(([{ when }]) => when === 'after commit' || when === 'after').map(([fault]) => ({
    fault,
    prepare: (stack: TestStack) => prepareStatusChange(STATUS_CASES['live freeze'], stack),
  })),
];

function standings(places: [Place, CaseName[]][], everyCase: boolean): Standing[] {
  return places.flatMap(([{ step, ...where }, names], nth) =>
    KINDS.flatMap(({ steps, prepare }, kind) =>
      (everyCase ? names : inTurn(names, nth + kind)).map((name) => ({
        fault: { ...where, step: steps[step] },
        prepare: (stack: TestStack) => prepare(CASES[name], stack),
      })),
    ),
  );
}

const inTurn = <Name>(names: readonly Name[], nth: number): Name[] =>
  names.filter((_, index) => index === nth % names.length);
