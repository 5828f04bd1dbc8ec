import type { Answer } from '../support/stack.ts';
import type { CardState } from './rules/card-state.ts';
import type { Controls } from './rules/controls.ts';
import type { Decision, DepositState, DepositTerms, Transfer } from './rules/deposit.ts';
import type { Operation } from './rules/operation.ts';
import type { Prices } from './rules/prices.ts';

/** docs/partners/money-fees-and-limits.md. */
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

export interface Account {
  name: string;
  partnerId: string;
  mode: 'test' | 'live';
  key: string;
  prices: Prices;
  controls: Controls | null;
  limits: Limits;
  cards: Card[];
  deposits: Deposit[];
  /** The movements since the last quiet point. */
  movements: Movement[];
  /** As of the last quiet point, like everything below. */
  availableCents: number;
  openCards: number;
  /** Loaded on the UTC day on which the account was opened. On another day we don't know what counts. */
  loadedCents: number;
  day: string;
  changes: Answer['json'][];
}

export const utcDay = (): string => new Date().toISOString().slice(0, 10);

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
  /** Undefined if its issuance failed. */
  id: string | undefined;
  externalRef: string;
  networkCardId: string | undefined;
  /** Every state that explains all answers so far; at a quiet point there is exactly one. */
  states: CardState[];
  /** This round's operations, in order. Those of one step were sent at the same time. */
  steps: Operation[][];
  /** Earlier requests with a key of their own, which can be sent again. */
  asked: Repeatable[];
  /** The authorizations that its client knows of, oldest first. */
  authorized: KnownAuthorization[];
  log: string[];
  /** Its transactions by id, as read at the last quiet point. */
  transactions: Map<string, Answer['json']>;
  events: Set<string>;
}

export interface KnownAuthorization {
  /** Our id of it in test mode, the network's in live mode. */
  ref: string;
  cents: number;
  /** False if its request has not been sent, although what comes later has been. */
  isRequested: boolean;
  /** Whether little more can be done with it, because it was declined or has ended. */
  isOver: boolean;
}

export interface Deposit {
  account: Account;
  id: string;
  address: string;
  /** The address's 20 bytes, in hex. */
  addressHash: string;
  terms: DepositTerms;
  /** Its state at the last quiet point. */
  state: DepositState;
  /** The transfers since then, as they are on the chain. */
  transfers: Transfer[];
  decisions: Decision[];
  log: string[];
}

export interface Repeatable {
  name: string;
  first: Answer;
  again(): Promise<Answer>;
  altered(): Promise<Answer>;
  /** Whether a replayed answer says that it is one. */
  saysSo: boolean;
}
