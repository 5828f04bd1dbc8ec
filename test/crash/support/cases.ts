import type { Mode } from '../../../domain/mode.ts';

/** What an issuance comes to. */
export interface Ending {
  status: 201 | 202 | 402;
  /** Of the error. */
  code?: string;
  /** The card's status in the end; null: no card is left. */
  card: 'active' | 'failed' | null;
}

/** How one issuance goes, and what it comes to whatever is killed on its way. */
export interface Case {
  mode: Mode;
  amountCents: number;
  funded: boolean;
  /** What an operator decides once it is past its deadline. */
  resolve?: 'issued' | 'failed';
  /** More than one where it depends on whether the network had finished before anybody was told that it accepted. */
  endings: readonly Ending[];
}

const ACTIVE: Ending = { status: 201, card: 'active' };
const ACTIVE_LATER: Ending = { status: 202, card: 'active' };
const FAILED_LATER: Ending = { status: 202, card: 'failed' };
const DECLINED: Ending = { status: 402, code: 'provider_declined', card: null };
const NO_FUNDS: Ending = { status: 402, code: 'insufficient_funds', card: null };

const live = (digits: number, ...endings: Ending[]): Case => ({
  mode: 'live',
  amountCents: 10_000 + digits,
  funded: true,
  endings,
});

/** Every outcome of issueCard: both modes, and in live mode every behaviour of the simulated network. */
export const CASES = {
  test: { ...live(0, ACTIVE), mode: 'test' },
  'test without funds': { ...live(0, NO_FUNDS), mode: 'test', funded: false },
  'live without funds': { ...live(0, NO_FUNDS), funded: false },
  'live 00': live(0, ACTIVE),
  'live 41': live(41, ACTIVE_LATER, ACTIVE),
  'live 42': live(42, DECLINED),
  'live 43': live(43, FAILED_LATER, DECLINED),
  'live 44': live(44, ACTIVE),
  'live 45': live(45, ACTIVE_LATER, ACTIVE),
  'live 46': live(46, ACTIVE_LATER, ACTIVE),
  'live 47 issued': { ...live(47, ACTIVE_LATER), resolve: 'issued' },
  'live 47 failed': { ...live(47, FAILED_LATER), resolve: 'failed' },
  'live 48': live(48, ACTIVE),
} as const satisfies Record<string, Case>;

export type CaseName = keyof typeof CASES;
