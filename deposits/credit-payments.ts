import { sql } from 'kysely';
import { judgePayment, type ReviewReason } from '../domain/deposit.ts';
import { applyPostings } from '../ledger/apply-posting.ts';
import { LedgerRejected } from '../ledger/ledger-error.ts';
import { encodePosting } from '../ledger/posting.ts';
import { followingAccounts } from '../platform/db/following-accounts.ts';
import type { Orm } from '../platform/db/orm.ts';
import { type Reader, readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import {
  type AccountDeposits,
  type AccountsWanted,
  accountOf,
  creditOperation,
  type DepositChange,
  type LockedDeposit,
  lockDeposits,
  MAX_AT_ONCE,
  writeDeposits,
} from './deposit-state.ts';
import type { PaymentRow } from './resource.ts';

/** The judgement of a payment. */
interface Verdict {
  deposit: LockedDeposit;
  payment: PaymentRow;
  /** Why an operator has to review it; null if it is credited. */
  reason: ReviewReason | null;
}

/** How many payments were judged, and how many of them credited. */
export interface CreditedPayments {
  judged: number;
  credited: number;
}

/**
 * Judges the payments that were found for these deposits, in the chain's order, and credits the balance:
 * ledger, payments, deposits and their events in one transaction of six statements, however many there are.
 * All deposits are one account's, because the transaction locks its balance. Deposits that another process
 * holds are left to that process. A payment goes to review if its credit would take the balance past the
 * largest integer.
 * @param longestLockWaitMs how long to wait for the account's balance before PostgreSQL's error; null: the
 * session's limit
 */
export function creditPayments(
  orm: Orm,
  depositIds: readonly string[],
  longestLockWaitMs: number | null = null,
): Promise<CreditedPayments> {
  return transaction(orm, async (tx) => {
    const held = await lockDeposits(tx, depositIds, 'skip', longestLockWaitMs);
    const deposits = held.filter(({ found }) => found.length > 0);
    if (deposits.length === 0) return { judged: 0, credited: 0 };
    const verdicts = await moveMoney(tx, deposits.flatMap(judgeFound));
    await markJudged(tx, { rows: JSON.stringify(verdicts.map(toRow)) });
    const byDeposit = Map.groupBy(verdicts, ({ deposit }) => deposit);
    await writeDeposits(tx, [...byDeposit].map(toDepositChange));
    return { judged: verdicts.length, credited: verdicts.filter(isCredit).length };
  });
}

/**
 * Finds the work for {@link creditPayments}, ordered by account, and each account's oldest deposits first.
 */
export function findUncredited(
  em: Reader,
  { after, except, limit }: AccountsWanted,
): Promise<AccountDeposits[]> {
  const { partnerId, mode } = after ?? { partnerId: '', mode: '' };
  return uncredited(em, { partnerId, mode, except: except.map(accountOf), limit });
}

function judgeFound(deposit: LockedDeposit): Verdict[] {
  let isPaid = deposit.is_paid;
  return deposit.found.map((payment) => {
    const judged = judgePayment(
      { amountCents: Number(deposit.amount_cents), expiresAt: new Date(deposit.expires_at), isPaid },
      { valueMicroUsdt: BigInt(payment.value_micro_usdt), blockTime: new Date(payment.block_time) },
    );
    if (judged.status === 'credited') isPaid = true;
    return { deposit, payment, reason: judged.status === 'credited' ? null : judged.reason };
  });
}

async function moveMoney(tx: Transactor, verdicts: readonly Verdict[]): Promise<Verdict[]> {
  const credits = verdicts.filter(isCredit);
  const postings = credits.map(({ deposit, payment: { tx_hash, log_index } }) =>
    creditOperation(deposit, `${deposit.network}/${tx_hash}/${log_index}`, Number(deposit.amount_cents)),
  );
  const answers = postings.length === 0 ? [] : await applyPostings(tx, postings.map(encodePosting));
  const refused = new Set<Verdict>();
  for (const [index, answer] of answers.entries()) {
    if (answer instanceof LedgerRejected && answer.reason === 'balance_out_of_range')
      refused.add(credits[index] as Verdict);
    else if (answer instanceof Error) throw answer;
    // Its payment is judged in the same transaction, so it can't have been moved before.
    else if (answer.outcome !== 'applied') throw new Error(`a credit can not be ${answer.outcome}`);
  }
  return verdicts.map((verdict) =>
    refused.has(verdict) ? { ...verdict, reason: 'balance_out_of_range' as const } : verdict,
  );
}

const isCredit = ({ reason }: Verdict): boolean => reason === null;

const creditedStatus = (verdict: Verdict) =>
  isCredit(verdict) ? ('credited' as const) : ('in_review' as const);

function toDepositChange([deposit, verdicts]: [LockedDeposit, Verdict[]]): DepositChange {
  const judged = new Map(verdicts.map((verdict) => [placeOf(verdict.payment), creditedStatus(verdict)]));
  return {
    deposit,
    payments: deposit.payments.map((payment) => ({
      ...payment,
      status: judged.get(placeOf(payment)) ?? payment.status,
    })),
    statuses: [...deposit.statuses, ...verdicts.map(creditedStatus)],
    newlyCreditedCents: verdicts.some(isCredit) ? Number(deposit.amount_cents) : 0,
  };
}

const placeOf = ({ tx_hash, log_index }: PaymentRow): string => `${tx_hash}/${log_index}`;

function toRow(verdict: Verdict) {
  const { deposit, payment, reason } = verdict;
  return {
    network: deposit.network,
    tx_hash: payment.tx_hash,
    log_index: payment.log_index,
    status: creditedStatus(verdict),
    review_reason: reason,
  };
}

const markJudged = writeStatement(
  (_, { rows }: { rows: string }) => sql`
    UPDATE deposit_payment p SET status = j.status, review_reason = j.review_reason
    FROM json_to_recordset(${rows}) AS j (network text, tx_hash text, log_index integer,
      status text, review_reason text)
    WHERE p.network = j.network AND p.tx_hash = j.tx_hash AND p.log_index = j.log_index`,
  { acrossTenants: 'queue' },
);

type Uncredited = { partnerId: string; mode: string; except: readonly string[]; limit: number };

// Written out, because it reads payments of several accounts in turn.
const uncredited = readStatement(
  (_, { partnerId, mode, except, limit }: Uncredited) => sql<AccountDeposits>`
    WITH RECURSIVE ${followingAccounts({
      table: 'deposit_payment',
      account: ['partner_id', 'mode'],
      isQueued: sql`status = 'found'`,
      after: sql`${partnerId}, ${mode}`,
    })}, account AS MATERIALIZED (
      SELECT partner_id, mode FROM following WHERE partner_id || '/' || mode <> ALL (${except}::text[])
        LIMIT ${limit}
    )
    SELECT a.partner_id AS "partnerId", a.mode, array(
      SELECT DISTINCT p.deposit_id FROM deposit_payment p
      WHERE p.status = 'found' AND p.partner_id = a.partner_id AND p.mode = a.mode
      ORDER BY p.deposit_id LIMIT ${sql.lit(MAX_AT_ONCE)}) AS "depositIds"
    FROM account a ORDER BY a.partner_id, a.mode`,
  { acrossTenants: 'queue' },
);
