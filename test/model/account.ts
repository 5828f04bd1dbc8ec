import type { Answer } from '../support/stack.ts';
import type { CardState } from './rules/card-state.ts';
import type { Decision, DepositState, DepositTerms, Transfer } from './rules/deposit.ts';
import type { Operation } from './rules/operation.ts';
import type { Prices } from './rules/prices.ts';

/** decisions.md, "422 limit_exceeded". */
export interface Limits {
  minCents: number;
  maxCents: number;
  maxOpenCards: number;
  maxLoadedCents: number;
}

export const PLATFORM_LIMITS: Limits = {
  minCents: 100,
  maxCents: 1_000_000,
  maxOpenCards: 10_000,
  maxLoadedCents: 100_000_000,
};

/** A partner in one mode, as the model and its client know it. */
export interface Account {
  /** For people: `partner 1 live`. */
  name: string;
  partnerId: string;
  mode: 'test' | 'live';
  key: string;
  prices: Prices;
  limits: Limits;
  cards: Card[];
  deposits: Deposit[];
  /** Since the last quiet point. */
  movements: Movement[];
  /** At the last quiet point, as everything below. */
  availableCents: number;
  openCards: number;
  /** On the UTC day on which the account was opened. On another one it is not known what is counted. */
  loadedCents: number;
  day: string;
  /** Changes of the balance, oldest first. */
  changes: Answer['json'][];
}

export const utcDay = (): string => new Date().toISOString().slice(0, 10);

/** A faucet credit, an operator's adjustment, or what was credited of a deposit. */
export interface Movement {
  name: string;
  type: 'faucet_credit' | 'adjustment' | 'deposit';
  cents: number;
  made: boolean;
  askedAt: number;
  heardAt: number;
}

export interface Card {
  account: Account;
  /** Undefined where its issuance came to nothing. */
  id: string | undefined;
  externalRef: string;
  /** What the network calls it, once that is known. */
  networkCardId: string | undefined;
  /** Every state that explains all answers so far; at a quiet point there is one. */
  states: CardState[];
  /** This round's, in order; those of one step were asked at the same time. */
  steps: Operation[][];
  /** What was asked before under a key of its own, and can be asked again. */
  asked: Repeatable[];
  /** Everything that was asked so far, a line each. */
  log: string[];
  /** By their ids, as read at the last quiet point. */
  transactions: Map<string, Answer['json']>;
  /** Ids of those that were compared. */
  events: Set<string>;
}

/** An address that was given out. */
export interface Deposit {
  account: Account;
  id: string;
  address: string;
  /** Its 20 bytes, in hex. */
  addressHash: string;
  terms: DepositTerms;
  /** As it was at the last quiet point. */
  state: DepositState;
  /** Since then, as the chain has them. */
  transfers: Transfer[];
  decisions: Decision[];
  /** Everything that was done with it so far, a line each. */
  log: string[];
}

export interface Repeatable {
  name: string;
  first: Answer;
  again(): Promise<Answer>;
  /** Another request under the same key or network transaction id. */
  altered(): Promise<Answer>;
  /** Whether the answer says that it is a replay. */
  saysSo: boolean;
}
