import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../crypto/new-id.ts';
import { query, writeStatement } from '../../db/sql.ts';
import { ApiError } from '../../domain/api-error.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { applyOperation } from '../../ledger/apply-operation.ts';
import { LedgerRejected } from '../../ledger/ledger-error.ts';
import type { LedgerOperation } from '../../ledger/operation.ts';
import { presentBalance } from '../../resources/balance.ts';
import type { CommandContext } from '../command-context.ts';
import { lockTestTerms } from '../funding/test-terms.ts';
import {
  answerOnce,
  type KeyedAnswer,
  type KeyedRequest,
  keepAnswer,
} from '../idempotency/answered-claim.ts';

const CREDITS_AN_HOUR = 60;

/**
 * Credits pretend money (partner-api.md, "Limits": 60 credits in any hour). What is refused is not kept and counts for
 * nothing.
 * @throws ApiError `rate_limited`, `idempotency_conflict`, `validation_failed` (the balance would go past the largest
 * integer)
 */
export function creditFaucet(
  context: CommandContext,
  request: KeyedRequest,
  amountCents: number,
): Promise<KeyedAnswer> {
  const { ring } = context;
  const { partnerId } = request;
  return answerOnce(context, request, async (tx) => {
    // Locks the account's usage row, so that credits are counted one after the other.
    const locked = await lockTestTerms(tx, ring, request, { counts: true });
    if ('replayed' in locked) return locked;
    await refuseMoreThanAllowed(tx, partnerId);
    const creditId = newId('credit');
    await insertCredit(tx, { id: creditId, partnerId, amountCents: String(amountCents) });
    const credited = await applyOperation(tx, faucetOperation(creditId, partnerId, amountCents)).catch(
      (error: unknown) => {
        if (!(error instanceof LedgerRejected) || error.reason !== 'balance_out_of_range') throw error;
        throw ApiError.ofField(
          'amount',
          `amount would take the balance above ${MAX_AMOUNT_CENTS} cents, the most it can be`,
        );
      },
    );
    if (credited.outcome === 'insufficient_funds' || credited.prepaid === null) {
      throw new Error('a credit can not lack funds and moves the prepaid balance');
    }
    return keepAnswer(tx, ring, request, 201, presentBalance('test', credited.prepaid));
  });
}

const insertCredit = writeStatement((db, credit: { id: string; partnerId: string; amountCents: string }) =>
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

/** @throws ApiError `rate_limited` */
async function refuseMoreThanAllowed(tx: EntityManager, partnerId: string): Promise<void> {
  const [row] = await query<{ credits: number; wait_seconds: number }>(
    tx,
    `SELECT count(*)::int AS credits,
       ceil(extract(epoch FROM min(created_at) + interval '1 hour' - clock_timestamp()))::int AS wait_seconds
     FROM faucet_credit WHERE partner_id = $1 AND created_at > clock_timestamp() - interval '1 hour'`,
    [partnerId],
  );
  if (row !== undefined && row.credits >= CREDITS_AN_HOUR) {
    throw new ApiError('rate_limited', {
      message: `You can credit a test balance ${CREDITS_AN_HOUR} times in any hour. Retry after the number of seconds in Retry-After.`,
      retryAfterSeconds: Math.max(1, row.wait_seconds),
    });
  }
}
