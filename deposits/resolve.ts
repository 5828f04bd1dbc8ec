import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import {
  creditableCents,
  type DepositDecision,
  type DepositVerdict,
  usdt,
  type WhyNotResolved,
} from '../domain/deposit.ts';
import { MAX_AMOUNT_CENTS } from '../domain/money.ts';
import { applyPosting } from '../ledger/apply-posting.ts';
import { LedgerRejected } from '../ledger/ledger-error.ts';
import { readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';
import { findReplay, type KeyedResponse, respondOnce, respondWith } from '../requests/respond-once.ts';
import {
  creditOperation,
  type DepositChange,
  type LockedDeposit,
  lockDeposits,
  rowAfter,
  writeDepositEvents,
  writeDeposits,
} from './deposit-state.ts';
import { selectOwnDeposit } from './reads.ts';
import { presentDeposit } from './resource.ts';

export interface DepositByHand extends DepositDecision {
  depositId: string;
  /** Whom Temporal recorded as the sender, if a signal decided it. */
  sentBy?: string | null;
}

/**
 * Applies an operator's decision to all payments of a deposit that are in review (docs/operating-deposits.md, "What to
 * check before you credit"): it credits them, rounded down to a cent, with `deposit.confirmed`, or records
 * that they were sent back. Payments, balance, event and audit entry are one transaction. Without a version,
 * it applies to whatever is in review, but of several payments none counts as sent back: one of them may have
 * come unseen. If the same actor repeats the same decision with the same version, nothing changes and the
 * result is the same. The caller notifies the workers afterwards.
 * @returns null if there is no such deposit
 */
export function resolveDeposit(
  { orm, actor }: Operator,
  { depositId, outcome, reason, version, sentBy }: DepositByHand,
): Promise<DepositVerdict | null> {
  return transaction(orm, async (tx): Promise<DepositVerdict | null> => {
    const [deposit] = await lockDeposits(tx, [depositId], 'wait');
    if (deposit === undefined) return null;
    if (version !== undefined && version !== deposit.version) {
      const [made] = await findResolution(tx, { depositId, version, actor, outcome, reason });
      return made === undefined
        ? refused('changed_meanwhile')
        : { resolved: true, creditedCents: Number(made.credited_cents), repeated: true };
    }
    if (!deposit.statuses.includes('in_review')) return refused('nothing_in_review');
    if (outcome === 'returned' && version === undefined && deposit.review_count > 1)
      return refused('version_needed');
    const creditedCents = outcome === 'credited' ? await creditReview(tx, deposit) : 0;
    if (typeof creditedCents === 'string') return refused(creditedCents);

    const resolved = await resolvePayments(tx, { depositId, outcome });
    await writeDeposits(tx, [afterDecision(deposit, outcome, creditedCents)]);
    await recordResolution(tx, {
      depositId,
      version: deposit.version,
      outcome,
      reason,
      actor,
      creditedCents: String(creditedCents),
    });
    recordAudit(tx, {
      actor,
      action: 'deposit.resolve',
      subject: depositId,
      detail: {
        partnerId: deposit.partner_id,
        mode: deposit.mode,
        outcome,
        reason,
        version: deposit.version,
        payments: resolved.length,
        creditedCents,
        amountUsdt: usdt(
          resolved.reduce((sum, { value_micro_usdt }) => sum + BigInt(value_micro_usdt), 0n),
          2,
        ),
        identity: sentBy,
      },
    });
    return { resolved: true, creditedCents, repeated: false };
  });
}

/** The deposit once its payments in review are `outcome`. */
function afterDecision(
  deposit: LockedDeposit,
  outcome: DepositDecision['outcome'],
  newlyCreditedCents: number,
): DepositChange {
  const statuses = deposit.statuses.filter((status) => status !== 'in_review').concat(outcome);
  const payments = deposit.payments.map((payment) =>
    payment.status === 'in_review' ? { ...payment, status: outcome } : payment,
  );
  return { deposit, payments, statuses, newlyCreditedCents };
}

/**
 * Credits what arrived and is not credited yet, rounded down to a cent. @returns the cents, or why it can't
 * be credited
 */
async function creditReview(tx: Transactor, deposit: LockedDeposit): Promise<number | WhyNotResolved> {
  const creditedCents = BigInt(deposit.credited_cents);
  const cents = creditableCents(BigInt(deposit.kept_micro_usdt), creditedCents);
  if (cents === 0n) return 'below_a_cent';
  if (creditedCents + cents > BigInt(MAX_AMOUNT_CENTS)) return 'past_the_largest_balance';
  try {
    await applyPosting(tx, creditOperation(deposit, `resolve/${deposit.version}`, Number(cents)));
  } catch (error) {
    if (error instanceof LedgerRejected && error.reason === 'balance_out_of_range')
      return 'past_the_largest_balance';
    throw error;
  }
  return Number(cents);
}

const refused = (because: WhyNotResolved): DepositVerdict => ({ resolved: false, because });

type OfDeposit = { depositId: string; outcome: DepositDecision['outcome'] };

const resolvePayments = writeStatement(
  (db, { depositId, outcome }: OfDeposit) =>
    db
      .updateTable('deposit_payment')
      .set({ status: outcome })
      .where('deposit_id', '=', depositId)
      .where('status', '=', sql.lit('in_review'))
      .returning('value_micro_usdt'),
  { acrossTenants: 'operator' },
);

type Decided = OfDeposit & { version: number; reason: string; actor: string };

const recordResolution = writeStatement((db, values: Decided & { creditedCents: string }) =>
  db.insertInto('deposit_resolution').values({
    deposit_id: values.depositId,
    version: values.version,
    outcome: values.outcome,
    credited_cents: values.creditedCents,
    reason: values.reason,
    actor: values.actor,
  }),
);

const findResolution = readStatement((db, { depositId, version, actor, outcome, reason }: Decided) =>
  db
    .selectFrom('deposit_resolution')
    .select('credited_cents')
    .where('deposit_id', '=', depositId)
    .where('version', '=', version)
    .where('actor', '=', actor)
    .where('outcome', '=', outcome)
    .where('reason', '=', reason),
);

/**
 * Settles what is in review of a test deposit, as an operator does for a live one (docs/partners/testing.md).
 * @throws ApiError `deposit_not_found`, `invalid_state`, `idempotency_conflict`
 */
export function resolveTestDeposit(
  context: CommandContext,
  request: KeyedRequest<'resolve_test_deposit'>,
  depositId: string,
  outcome: DepositDecision['outcome'],
): Promise<KeyedResponse> {
  const { ring } = context;
  return respondOnce(context, request, async (tx) => {
    const [known] = await selectOwnDeposit(tx, request, { depositId });
    if (known === undefined) throw new ApiError('deposit_not_found');
    const [deposit] = await lockDeposits(tx, [depositId], 'wait');
    if (deposit === undefined) throw new ApiError('deposit_not_found');
    const replay = await findReplay({ tx, ring }, request);
    if (replay !== null) return replay;
    if (!deposit.statuses.includes('in_review')) {
      throw new ApiError('invalid_state', {
        message: `Nothing of this deposit is in review: it is ${deposit.status}. GET /funding/deposits/${depositId} shows it.`,
      });
    }
    const creditedCents = outcome === 'credited' ? await creditReview(tx, deposit) : 0;
    if (typeof creditedCents === 'string') {
      throw new ApiError('invalid_state', {
        message:
          'What arrived can not be credited: the balance would exceed its maximum. Resolve it as returned.',
      });
    }
    const row = rowAfter(afterDecision(deposit, outcome, creditedCents));
    await settle(tx, {
      depositId,
      outcome,
      creditedCents: String(creditedCents),
      status: row.status,
      confirmedAt: row.confirmed_at,
      actor: request.apiKeyId ?? 'partner',
    });
    if (creditedCents > 0)
      await writeDepositEvents(tx, [{ type: 'deposit.confirmed', row, clock: deposit.clock }]);
    return respondWith({ tx, ring }, request, 200, presentDeposit(row));
  });
}

type Settled = OfDeposit &
  Pick<LockedDeposit, 'status'> & { creditedCents: string; confirmedAt: string | null; actor: string };

const settle = writeStatement(
  (_, { depositId, outcome, creditedCents, status, confirmedAt, actor }: Settled) => sql`
    SELECT settle_test_deposit(${depositId}, ${outcome}, ${creditedCents}, ${status}, ${confirmedAt}, ${actor})`,
);
