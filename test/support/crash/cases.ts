import type { Mode } from '../../../domain/mode.ts';

/** What an operation comes to. */
export interface Ending {
  status: 201 | 202 | 402;
  /** Of the error. */
  code?: string;
  /** Whether the money is on the card in the end; null: nothing is left of the operation. */
  end: 'loaded' | 'failed' | null;
}

/** How one operation goes, and what it comes to whatever is killed on its way. */
export interface Case {
  mode: Mode;
  amountCents: number;
  funded: boolean;
  /** What an operator decides once it is past its deadline. */
  resolve?: 'yes' | 'no';
  /** More than one where it depends on whether the network had finished before anybody was told that it accepted. */
  endings: readonly Ending[];
}

const LOADED: Ending = { status: 201, end: 'loaded' };
const LOADED_LATER: Ending = { status: 202, end: 'loaded' };
const FAILED_LATER: Ending = { status: 202, end: 'failed' };
const DECLINED: Ending = { status: 402, code: 'provider_declined', end: null };
const NO_FUNDS: Ending = { status: 402, code: 'insufficient_funds', end: null };

const live = (digits: number, ...endings: Ending[]): Case => ({
  mode: 'live',
  amountCents: 10_000 + digits,
  funded: true,
  endings,
});

/**
 * Every outcome of issueCard and of topUpCard, with every behaviour of the simulated network.
 */
export const CASES = {
  'live without funds': { ...live(0, NO_FUNDS), funded: false },
  'live 00': live(0, LOADED),
  'live 41': live(41, LOADED_LATER, LOADED),
  'live 42': live(42, DECLINED),
  'live 43': live(43, FAILED_LATER, DECLINED),
  'live 44': live(44, LOADED),
  'live 45': live(45, LOADED_LATER, LOADED),
  'live 46': live(46, LOADED_LATER, LOADED),
  'live 47 yes': { ...live(47, LOADED_LATER), resolve: 'yes' },
  'live 47 no': { ...live(47, FAILED_LATER), resolve: 'no' },
  'live 48': live(48, LOADED),
} as const satisfies Record<string, Case>;

export type CaseName = keyof typeof CASES;
