import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { DepositVerdict, WhyNotResolved } from '../../domain/deposit.ts';
import { type DepositDecision, MICRO_USDT_PER_CENT, usdt } from '../../domain/deposit.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { applyOperation } from '../../ledger/apply-operation.ts';
import { LedgerRejected } from '../../ledger/ledger-error.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';
import { creditOperation, type LockedDeposit, lockDeposits, writeDeposits } from './deposit-state.ts';

export interface DepositByHand extends DepositDecision {
  depositId: string;
}

/**
 * Carries out what an operator decides about all payments of a deposit that wait for review (decisions.md, "Deposit"):
 * they are credited, to the whole cent, with `deposit.confirmed`, or recorded as sent back. Payments, balance, event and
 * audit are one transaction. Without a version it decides on whatever there is. Asked again by the same actor, with the version it was asked with before, it answers the
 * same and does nothing. The caller announces afterwards.
 * @returns null where there is no such deposit
 */
export function resolveDeposit(
  { orm, actor }: Operator,
  { depositId, outcome, reason, version }: DepositByHand,
): Promise<DepositVerdict | null> {
  return transaction(orm, async (tx): Promise<DepositVerdict | null> => {
    const [deposit] = await lockDeposits(tx, [depositId], 'wait');
    if (deposit === undefined) return null;
    if (version !== undefined && version !== deposit.version) {
      const creditedCents = await readRepeated(tx, { depositId, version, actor, outcome, reason });
      return creditedCents === null
        ? refused('changed_meanwhile')
        : { resolved: true, creditedCents, repeated: true };
    }
    if (!deposit.statuses.includes('in_review')) return refused('nothing_in_review');
    const creditedCents = outcome === 'credited' ? await credit(tx, deposit) : 0;
    if (typeof creditedCents === 'string') return refused(creditedCents);

    const settled = await query<{ value_micro_usdt: string }>(tx, SETTLE, [depositId, outcome]);
    const statuses = deposit.statuses.filter((status) => status !== 'in_review').concat(outcome);
    await writeDeposits(tx, [{ deposit, statuses, newlyCreditedCents: creditedCents }]);
    await query(tx, RECORD, [depositId, deposit.version, outcome, creditedCents, reason, actor]);
    recordAudit(tx, actor, 'deposit.resolve', depositId, {
      ...{ partnerId: deposit.partner_id, mode: deposit.mode, outcome, reason },
      ...{ version: deposit.version, payments: settled.length, creditedCents },
      amountUsdt: usdt(
        settled.reduce((sum, { value_micro_usdt }) => sum + BigInt(value_micro_usdt), 0n),
        2,
      ),
    });
    return { resolved: true, creditedCents, repeated: false };
  });
}

/** Credits what arrived and is in no balance yet, rounded down to a cent. @returns the cents, or why it can't be */
async function credit(tx: EntityManager, deposit: LockedDeposit): Promise<number | WhyNotResolved> {
  const kept = BigInt(deposit.kept_micro_usdt) / MICRO_USDT_PER_CENT;
  const cents = kept - BigInt(deposit.credited_cents);
  if (cents < 1n) return 'below_a_cent';
  if (kept > BigInt(MAX_AMOUNT_CENTS)) return 'past_the_largest_balance';
  try {
    await applyOperation(tx, creditOperation(deposit, `resolve/${deposit.version}`, Number(cents)));
  } catch (error) {
    if (error instanceof LedgerRejected && error.reason === 'balance_out_of_range')
      return 'past_the_largest_balance';
    throw error;
  }
  return Number(cents);
}

/** @returns what the same decision credited when it was carried out; null where it was not */
async function readRepeated(
  tx: EntityManager,
  { depositId, version, actor, outcome, reason }: DepositByHand & { actor: string },
): Promise<number | null> {
  const [made] = await query<{ credited_cents: string }>(
    tx,
    `SELECT credited_cents FROM deposit_resolution
     WHERE deposit_id = $1 AND version = $2 AND actor = $3 AND outcome = $4 AND reason = $5`,
    [depositId, version, actor, outcome, reason],
  );
  return made === undefined ? null : Number(made.credited_cents);
}

const refused = (because: WhyNotResolved): DepositVerdict => ({ resolved: false, because });

const SETTLE = `
  UPDATE deposit_payment SET status = $2 WHERE deposit_id = $1 AND status = 'in_review'
  RETURNING value_micro_usdt::text AS value_micro_usdt`;

const RECORD = `
  INSERT INTO deposit_resolution (deposit_id, version, outcome, credited_cents, reason, actor)
  VALUES ($1, $2, $3, $4, $5, $6)`;
