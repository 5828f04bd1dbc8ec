import assert from 'node:assert/strict';
import { asOwner } from '../postgres.ts';
import type { TestStack } from '../stack.ts';
import { untilHolds } from '../until.ts';
import { environmentOf, type Operate, type Outcome, operateIn } from './operate.ts';

/** Accepted by the simulated network, which then never finishes (docs/partners/testing.md). */
export const NEVER_FINISHES = 10_047;

/** An operation that an operator can resolve, and its names. */
export interface Resolvable {
  command: 'card' | 'topup' | 'withdrawal';
  success: '--issued' | '--succeeded';
  /** Its status while it is pending, and once it has succeeded. */
  pending: string;
  succeeded: string;
  /** The variable that holds its deadline. */
  deadline: 'ISSUANCE_DEADLINE' | 'TOPUP_DEADLINE' | 'WITHDRAWAL_DEADLINE';
  /** Its kind in "attention list", and what that says the network has not reported. */
  kind: 'card_issuance' | 'card_topup' | 'card_withdrawal';
  waitsFor: string;
  /** An unknown id, and what its refusal says. */
  unknownId: string;
  unknown(id: string): RegExp;
  workflowIdOf(id: string): string;
}

/** Where it is resolved; made for each stack. */
interface Place {
  stack: TestStack;
  operate: Operate;
  partnerId: string;
  /** One of {@link NEVER_FINISHES}, in live mode; returns its id. */
  createPending(): Promise<string>;
}

/** What a test can do with resolvable operations. */
export interface Resolving {
  what: Resolvable;
  operate: Operate;
  /** One that is listed as waiting for a person. */
  createOverdue(): Promise<string>;
  resolve(id: string, outcome: string, reason?: string): Promise<Outcome>;
  /** Runs command lines with a configuration in which every deadline has passed. */
  later: Operate;
  show(id: string): Promise<Outcome>;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the contract promises.
  attention(): Promise<any>;
  /** What is held of the account's live balance, in cents. */
  held(): Promise<number>;
  terminate(id: string): Promise<unknown>;
  /** As if it had begun 25 hours ago. */
  age(id: string): Promise<unknown>;
}

export function resolvingIn(what: Resolvable, place: () => Place): Resolving {
  const operate: Operate = (...args) => place().operate(...args);
  const attention = async () => (await operate('attention', 'list')).json;
  return {
    what,
    operate,
    createOverdue: async () => {
      const id = await place().createPending();
      await untilHolds(async () => {
        assert.ok((await attention()).some((item: { id: string }) => item.id === id));
      });
      return id;
    },
    resolve: (id, outcome, reason = 'ticket 4711') =>
      operate(what.command, 'resolve', id, outcome, '--reason', reason),
    later: (...args) =>
      operateIn({ ...environmentOf(place().stack.config), [what.deadline]: '1ms' })(...args),
    show: (id) => operate(what.command, 'show', id),
    attention,
    held: async () => (await operate('ledger', 'balance', place().partnerId, '--mode', 'live')).json.held,
    age: (id) =>
      asOwner(
        place().stack,
        `UPDATE ${what.command} SET created_at = created_at - interval '25 hours' WHERE id = $1`,
        [id],
      ),
    terminate: (id) => place().stack.client.workflow.getHandle(what.workflowIdOf(id)).terminate(),
  };
}
