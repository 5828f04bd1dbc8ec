import type { TestStack } from '../stack.ts';
import { type Fault, faultsOf } from './fault.ts';
import {
  ISSUANCE_STEPS,
  prepareIssuance,
  prepareTopUp,
  prepareWithdrawal,
  TRANSFER_STEPS,
} from './fundings.ts';
import type { Standing } from './kill-at-places.ts';
import { CASES, type CaseName, type Prepare } from './operations.ts';
import {
  prepareOpposites,
  prepareStatusChange,
  STATUS_CASES,
  type StatusCaseName,
} from './status-changes.ts';

type Step = keyof typeof ISSUANCE_STEPS;
/** A step in one run, the cases that come by it, and the places around it: every one unless they are given. */
type Row<S extends string, Name> = [step: S, run: Fault['run'], cases: Name[], whens?: Fault['when'][]];

/** Issuances, top-ups and withdrawals take the same steps, each with names of its own. */
const KINDS: { steps: Record<Step, string>; prepare: Prepare }[] = [
  { steps: ISSUANCE_STEPS, prepare: prepareIssuance },
  { steps: TRANSFER_STEPS, prepare: prepareTopUp },
  { steps: TRANSFER_STEPS, prepare: prepareWithdrawal },
];

const BY_HAND: CaseName[] = ['live 47 yes', 'live 47 no'];
const ACCEPTED: CaseName[] = ['live 41', 'live 43', 'live 45', 'live 46', ...BY_HAND];
const LIVE: CaseName[] = ['live 00', 'live 42', 'live 44', 'live 48', ...ACCEPTED];
const OPENED: CaseName[] = ['live without funds', ...LIVE];
/** Those about which the network says yes or no. */
const DECIDED = LIVE.filter((name) => !BY_HAND.includes(name));
const FROM_COMMIT: Fault['when'][] = ['before commit', 'after commit', 'after'];
/** Before a decision by hand is applied, the operation is looked up, in case the network has an answer after all. */
const LOOKED_UP: CaseName[] = ['live 44', 'live 48', ...BY_HAND];

/** Every step of issueCard, topUpCard and withdrawFromCard, and the cases that come by it. */
const PLACES: Row<Step, CaseName>[] = [
  ['request', 1, OPENED],
  ['request', 2, [...ACCEPTED, 'live 48'], ['before']],
  ['request', 'accepted', ACCEPTED, FROM_COMMIT],
  ['request', 'decided', DECIDED, FROM_COMMIT],
  ['ask', 1, LIVE, ['before']],
  ['ask', 2, [...ACCEPTED, 'live 48'], ['before']],
  ['ask', 'accepted', ACCEPTED, ['after']],
  ['ask', 'decided', DECIDED.filter((name) => name !== 'live 44'), ['after']],
  ['lookUp', 1, LOOKED_UP, ['before', 'after']],
  ['flagOverdue', 1, BY_HAND, ['before', 'after']],
  ['resolve', 1, BY_HAND],
];

/** Every place of the first task, in which the API's own worker runs them. */
const FIRST_PLACES: Row<Step, CaseName>[] = [
  ['request', 1, ['live without funds', 'live 00', 'live 42']],
  ['ask', 1, ['live 00', 'live 41', 'live 42', 'live 44'], ['before']],
  ['ask', 'decided', ['live 00', 'live 42'], ['after']],
  ['lookUp', 1, ['live 44'], ['before']],
  ['request', 'accepted', ['live 41'], ['before commit', 'after commit']],
  ['request', 'decided', ['live 00', 'live 42', 'live 44'], FROM_COMMIT],
];

const ALL_CHANGES = Object.keys(STATUS_CASES) as StatusCaseName[];
/** Those that the network is asked for. */
const ASKED: StatusCaseName[] = ['live freeze', 'live unfreeze', 'live block', 'live refused there'];

/** Every step of changeCardStatus, and the cases that come by it. */
const STATUS_PLACES: Row<string, StatusCaseName>[] = [
  ['requestStatusChange', 1, ALL_CHANGES],
  ['changeCardStatus', 1, ASKED, ['before']],
  ['changeCardStatus', 'decided', ASKED, ['after']],
  ['requestStatusChange', 'decided', ASKED, ['before commit', 'after commit']],
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
  ...placesOf(STATUS_PLACES).flatMap(({ fault, cases }, nth) =>
    (everyCase ? cases : inTurn(cases, nth)).map((name) => ({
      fault,
      prepare: (stack: TestStack) => prepareStatusChange(STATUS_CASES[name], stack),
    })),
  ),
  ...OPPOSITES,
];

/** The same in an API that is killed in first tasks. */
export const apiPlaces = ({ everyCase }: { everyCase: boolean }): Standing[] => [
  ...standings(FIRST_PLACES, everyCase),
  ...placesOf(STATUS_PLACES)
    .filter(({ fault: { when } }) => when === 'after commit' || when === 'after')
    .map(({ fault }) => ({
      fault,
      prepare: (stack: TestStack) => prepareStatusChange(STATUS_CASES['live freeze'], stack),
    })),
];

function placesOf<S extends string, Name>(rows: Row<S, Name>[]) {
  return rows.flatMap(([step, run, cases, whens]) =>
    faultsOf(step, run, whens).map((fault) => ({ fault, cases })),
  );
}

function standings(rows: Row<Step, CaseName>[], everyCase: boolean): Standing[] {
  return placesOf(rows).flatMap(({ fault, cases }, nth) =>
    KINDS.flatMap(({ steps, prepare }, kind) =>
      (everyCase ? cases : inTurn(cases, nth + kind)).map((name) => ({
        fault: { ...fault, step: steps[fault.step] },
        prepare: (stack: TestStack) => prepare(CASES[name], stack),
      })),
    ),
  );
}

const inTurn = <Name>(names: readonly Name[], nth: number): Name[] =>
  names.filter((_, index) => index === nth % names.length);
