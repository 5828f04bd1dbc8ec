import type { EntityManager } from '@mikro-orm/postgresql';
import { ApiError } from '../../domain/api-error.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { applyOperations } from '../../ledger/apply-operation.ts';
import { LedgerRejected } from '../../ledger/ledger-error.ts';
import { encodeOperation } from '../../ledger/operation.ts';
import { presentTransaction } from '../../resources/transaction.ts';
import { type Decision, decideSettlements, type NewTransaction } from './decide-settlements.ts';
import { insertTransactions } from './insert-transactions.ts';
import type { Settled, Settlement, SettlementOutcome } from './settlement.ts';
import { settlementOperation } from './settlement-operation.ts';
import { lockSettlementTerms } from './settlement-terms.ts';

/**
 * The one settlement of transactions (decisions.md, "Rules"): of the network's events and of simulated ones, of any
 * accounts and modes, decided in the order they come, in the caller's transaction. Four statements, however many come:
 * lock, read, the ledger's call, insert. What was settled before gets the same transaction again.
 * @param longestLockWaitMs after which a lock is given up with PostgreSQL's error; null: the session's own.
 * @returns what became of each, in its place; a refusal (`card_not_found`, `invalid_state`, `idempotency_conflict`,
 * `validation_failed`) touches no other.
 * @throws where a balance would leave the safe integers: ApiError `validation_failed`; LedgerRejected where others came
 * along, which were decided as if it had not: settle each alone.
 */
export async function settleTransactions(
  tx: EntityManager,
  settlements: readonly Settlement[],
  longestLockWaitMs: number | null = null,
): Promise<SettlementOutcome[]> {
  const terms = await lockSettlementTerms(tx, settlements, longestLockWaitMs);
  const decisions = decideSettlements(settlements, terms);
  const made = decisions.filter((decision) => 'card' in decision);
  try {
    await moveMoney(tx, made);
  } catch (error) {
    const isOutOfRange = error instanceof LedgerRejected && error.reason === 'balance_out_of_range';
    if (!isOutOfRange || settlements.length > 1) throw error;
    throw ApiError.ofField(
      'amount',
      `amount would take the balance more than ${MAX_AMOUNT_CENTS} cents above or below zero`,
    );
  }
  await insertTransactions(tx, made);
  return decisions.map(outcomeOf);
}

/** {@link settleTransactions} of one. @throws ApiError what would be its outcome: roll back. */
export async function settleTransaction(tx: EntityManager, settlement: Settlement): Promise<Settled> {
  const [outcome] = await settleTransactions(tx, [settlement]);
  if (outcome === undefined || outcome instanceof ApiError) throw outcome;
  return outcome;
}

async function moveMoney(tx: EntityManager, made: readonly NewTransaction[]): Promise<void> {
  const operations = made
    .map(({ row }) => settlementOperation(row))
    .filter((operation) => operation !== null);
  if (operations.length === 0) return;
  const answers = await applyOperations(tx, operations.map(encodeOperation));
  for (const [index, answer] of answers.entries()) {
    if (answer instanceof Error) throw answer;
    // All who move a card's money lock its row, and the rest may overdraw: there was enough.
    if (answer.outcome !== 'applied') throw new Error(`a settlement can not be ${answer.outcome}`);
    // Debits that may overdraw leave room for what is held: its post can't be refused later.
    if (answer.prepaid !== null && answer.prepaid.availableCents < -MAX_AMOUNT_CENTS) {
      throw new LedgerRejected(operations[index]?.operationId ?? '', 'balance_out_of_range');
    }
  }
}

function outcomeOf(decision: Decision): SettlementOutcome {
  if (decision instanceof ApiError) return decision;
  return 'known' in decision
    ? { transaction: presentTransaction(decision.known), replayed: true }
    : { transaction: presentTransaction(decision.row), replayed: false };
}
