import { sql } from 'kysely';
import { newId } from '../../crypto/new-id.ts';
import { readStatement, type Transactor, writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { Tenant } from '../../domain/mode.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { applyOperation } from '../../ledger/apply-operation.ts';
import { LedgerRejected } from '../../ledger/ledger-error.ts';
import type { LedgerOperation } from '../../ledger/operation.ts';
import { type BalanceCents, presentBalance } from '../../resources/balance.ts';
import type { CommandContext } from '../command-context.ts';
import { lockTestTerms } from '../funding/terms.ts';
import { answerOnce, answerWith, type KeyedAnswer } from '../idempotency/answer-once.ts';
import type { KeyedRequest } from '../idempotency/claim.ts';
import { Refusal } from '../refusal.ts';
import {
  type BalanceAdjustment,
  needsApproval,
  requestApproval,
  requestOfKey,
  type WaitingAdjustment,
} from './adjustment-requests.ts';
import { type Operator, recordAudit } from './operator-context.ts';
import { lockPartner } from './partners.ts';

export interface AdjustedBalance {
  adjustmentId: string;
  createdAt: Date;
  /** Right after the adjustment. */
  balance: BalanceCents;
}

/**
 * Credits or debits the prepaid balance by hand. The same adjustment with the same key takes effect once and returns the
 * same result. A large one only waits for another operator (docs/decisions/two-persons.md).
 * @param approvalCents above this amount it waits; null: it never does, unless the database has a limit of its own
 * @throws Refusal if there is no such account, the available balance does not cover a debit, the key was used for a
 * different adjustment, or the adjustment was rejected. Nothing has changed then.
 */
export function adjustBalance(
  { orm, actor }: Operator,
  adjustment: BalanceAdjustment,
  approvalCents: number | null = null,
): Promise<AdjustedBalance | WaitingAdjustment> {
  const { partnerId, mode, amountCents, reason, key } = adjustment;
  return transaction(orm, async (tx) => {
    // Of two adjustments with one key, the second waits here and then finds the first.
    await lockPartner(tx, partnerId);
    const earlier = key === null ? undefined : await findAdjustment(tx, adjustment, key);
    if (earlier !== undefined) return bookAdjustment(tx, earlier, adjustment);
    const requested = await requestOfKey(tx, adjustment);
    if (requested !== null) return requested;
    if (await needsApproval(tx, amountCents, approvalCents)) return requestApproval(tx, actor, adjustment);
    const created = await createAdjustment(tx, newId('adj'), adjustment);
    const booked = await bookAdjustment(tx, created, adjustment);
    const detail = { adjustmentId: created.id, mode, amountCents, reason, key };
    recordAudit(tx, actor, 'partner.adjust', partnerId, detail);
    return booked;
  });
}

/**
 * Moves the money of an adjustment, once. @returns the balance right after that
 * @throws Refusal if the balance does not cover it, or would exceed its maximum
 */
export async function bookAdjustment(
  tx: Transactor,
  { id, created_at }: AdjustmentRow,
  adjustment: BalanceAdjustment,
): Promise<AdjustedBalance> {
  const { partnerId, mode } = adjustment;
  const balance = await moveMoney(tx, adjustmentOperation(id, adjustment), () => {
    throw new Refusal('The balance would exceed its maximum: adjust it by less.');
  });
  if (balance === 'insufficient_funds') {
    throw new Refusal(
      `The available ${mode} balance does not cover this debit, so nothing has changed: see ` +
        `"operator ledger balance ${partnerId} --mode ${mode}".`,
    );
  }
  return { adjustmentId: id, createdAt: new Date(created_at), balance };
}

export interface AdjustmentRow {
  id: string;
  created_at: string;
}

/** @throws Refusal if the key was used for a different adjustment. */
async function findAdjustment(
  tx: Transactor,
  { partnerId, mode, amountCents, reason }: BalanceAdjustment,
  key: string,
): Promise<AdjustmentRow | undefined> {
  const [found] = await adjustmentWithKey(tx, { partnerId, mode, key });
  if (found !== undefined && (Number(found.amount_cents) !== amountCents || found.reason !== reason)) {
    throw new Refusal(
      `The key "${key}" was already used for a different adjustment, ${found.id} of ${found.amount_cents} cents ` +
        `(${found.reason}): use a new key for each adjustment.`,
    );
  }
  return found;
}

const adjustmentWithKey = readStatement((db, { partnerId, mode, key }: Tenant & { key: string }) =>
  db
    .selectFrom('balance_adjustment')
    .select(['id', 'created_at', 'amount_cents', 'reason'])
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('key', '=', key),
);

/** Only writes the row: {@link bookAdjustment} moves the money. */
export async function createAdjustment(
  tx: Transactor,
  id: string,
  { amountCents, ...adjustment }: BalanceAdjustment,
): Promise<AdjustmentRow> {
  const row = { ...adjustment, id, amountCents: String(amountCents) };
  const [created] = await insertAdjustment(tx, row);
  return created as AdjustmentRow;
}

type NewAdjustment = Omit<BalanceAdjustment, 'amountCents'> & { id: string; amountCents: string };

const insertAdjustment = writeStatement((db, adjustment: NewAdjustment) =>
  db
    .insertInto('balance_adjustment')
    .values({
      id: adjustment.id,
      partner_id: adjustment.partnerId,
      mode: adjustment.mode,
      amount_cents: adjustment.amountCents,
      reason: adjustment.reason,
      key: adjustment.key,
    })
    .returning(['id', 'created_at']),
);

function adjustmentOperation(
  id: string,
  { partnerId, mode, amountCents }: BalanceAdjustment,
): LedgerOperation {
  const flow =
    amountCents > 0
      ? ({ code: 'adjustment_credit', debit: 'adjustment', credit: 'prepaid' } as const)
      : ({ code: 'adjustment_debit', debit: 'prepaid', credit: 'adjustment' } as const);
  return {
    operationId: `adjust/${id}`,
    partnerId,
    mode,
    transfers: [{ step: 'adjust', phase: 'single', amountCents: Math.abs(amountCents), ...flow }],
  };
}

const FAUCET_CREDITS_PER_HOUR = 60;

/**
 * Credits pretend money to a test balance, at most 60 times in any hour (docs/partners/money-fees-and-limits.md). A refused
 * request is not stored and does not count.
 * @throws ApiError `rate_limited`, `idempotency_conflict`, or `validation_failed` if the balance would exceed its maximum.
 */
export function creditFaucet(
  context: CommandContext,
  request: KeyedRequest,
  amountCents: number,
): Promise<KeyedAnswer> {
  const { ring } = context;
  const { partnerId } = request;
  return answerOnce(context, request, async (tx) => {
    // Locks the account's usage row, so that credits are counted one at a time.
    const locked = await lockTestTerms({ tx, ring }, request, { counts: true });
    if ('replayed' in locked) return locked;
    await limitFaucetCredits(tx, partnerId);
    const creditId = newId('credit');
    await insertFaucetCredit(tx, { id: creditId, partnerId, amountCents: String(amountCents) });
    const balance = await moveMoney(tx, faucetOperation(creditId, partnerId, amountCents), () => {
      const message = `amount would take the balance above the maximum of ${MAX_AMOUNT_CENTS} cents`;
      throw ApiError.ofField('amount', message);
    });
    if (balance === 'insufficient_funds') throw new Error('a faucet never lacks funds');
    return answerWith({ tx, ring }, request, 201, presentBalance('test', balance));
  });
}

/** @throws ApiError `rate_limited` */
async function limitFaucetCredits(tx: Transactor, partnerId: string): Promise<void> {
  const [lastHour] = await faucetCreditsInLastHour(tx, { partnerId });
  if (lastHour !== undefined && lastHour.credits >= FAUCET_CREDITS_PER_HOUR) {
    throw new ApiError('rate_limited', {
      message: `You can credit a test balance ${FAUCET_CREDITS_PER_HOUR} times in any hour. Retry after the number of seconds in Retry-After, with the same Idempotency-Key.`,
      retryAfterSeconds: Math.max(1, lastHour.wait_seconds),
    });
  }
}

const HOUR = sql`interval '1 hour'`;

const faucetCreditsInLastHour = readStatement((db, { partnerId }: { partnerId: string }) =>
  db
    .selectFrom('faucet_credit')
    .select(({ fn }) => [
      sql<number>`count(*)::int`.as('credits'),
      sql<number>`ceil(extract(epoch FROM ${fn.min('created_at')} + ${HOUR} - clock_timestamp()))::int`.as(
        'wait_seconds',
      ),
    ])
    .where('partner_id', '=', partnerId)
    .where('mode', '=', 'test')
    .where('created_at', '>', sql<string>`clock_timestamp() - ${HOUR}`),
);

const insertFaucetCredit = writeStatement(
  (db, credit: { id: string; partnerId: string; amountCents: string }) =>
    db.insertInto('faucet_credit').values({
      id: credit.id,
      partner_id: credit.partnerId,
      mode: 'test',
      amount_cents: credit.amountCents,
    }),
);

function faucetOperation(creditId: string, partnerId: string, amountCents: number): LedgerOperation {
  const flow = { code: 'fund_faucet', debit: 'faucet', credit: 'prepaid' } as const;
  return {
    operationId: `faucet/${creditId}`,
    partnerId,
    mode: 'test',
    transfers: [{ step: 'credit', phase: 'single', amountCents, ...flow }],
  };
}

/**
 * Applies an operation that moves the prepaid balance.
 * @param refuse throws if the balance would exceed its maximum
 * @returns the balance right after it
 */
async function moveMoney(
  tx: Transactor,
  operation: LedgerOperation,
  refuse: () => never,
): Promise<BalanceCents | 'insufficient_funds'> {
  const result = await applyOperation(tx, operation).catch((error: unknown) => {
    if (error instanceof LedgerRejected && error.reason === 'balance_out_of_range') refuse();
    throw error;
  });
  if (result.outcome === 'insufficient_funds') return result.outcome;
  if (result.prepaid === null) throw new Error(`${operation.operationId} did not move the prepaid balance`);
  return result.prepaid;
}
