import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../db/new-id.ts';
import { query } from '../db/sql.ts';
import { transaction } from '../db/transaction.ts';
import { ApiError } from '../domain/api-error.ts';
import { presentBalance } from '../domain/balance-resource.ts';
import { applyOperation } from '../ledger/apply-operation.ts';
import { LedgerRejected } from '../ledger/ledger-error.ts';
import type { LedgerOperation } from '../ledger/operation.ts';
import { answerClaim } from './answer-claim.ts';
import { type ClaimRequest, claimIdempotencyKey } from './claim-idempotency-key.ts';
import type { CommandContext } from './command-context.ts';
import type { StoredResponse } from './idempotency-response.ts';

const CREDITS_AN_HOUR = 60;

/**
 * Credits pretend money (partner-api.md, "Limits": 60 credits in any hour). Claim, money and answer are one transaction,
 * so a retry finds either nothing or the answer; what is refused is not kept and counts for nothing.
 * @throws ApiError `rate_limited`, `idempotency_in_flight`, `idempotency_conflict`, `validation_failed` (the balance
 * would go past the largest integer)
 */
export function creditFaucet(
  { orm, ring }: CommandContext,
  request: Omit<ClaimRequest, 'operation' | 'cardId' | 'sealedRequest' | 'leaseMs'>,
  amountCents: number,
): Promise<{ replayed: boolean; response: StoredResponse }> {
  return transaction(orm, async (tx) => {
    const claim = await claimIdempotencyKey(tx, ring, {
      ...request,
      operation: 'credit_faucet',
      cardId: null,
      sealedRequest: null,
      leaseMs: 0,
    });
    if (claim.outcome === 'replay') return { replayed: true, response: claim.response };
    await takeTurn(tx, request.partnerId);
    const creditId = newId('credit');
    await query(
      tx,
      `INSERT INTO faucet_credit (id, partner_id, mode, amount_cents) VALUES ($1, $2, 'test', $3)`,
      [creditId, request.partnerId, amountCents],
    );
    const credited = await applyOperation(
      tx,
      faucetOperation(creditId, request.partnerId, amountCents),
    ).catch((error: unknown) => {
      if (!(error instanceof LedgerRejected) || error.reason !== 'balance_out_of_range') throw error;
      throw ApiError.ofField('amount', 'amount would take the balance past the largest integer');
    });
    if (credited.outcome === 'insufficient_funds' || credited.prepaid === null) {
      throw new Error('a credit can not lack funds and moves the prepaid balance');
    }
    const balance = presentBalance('test', credited.prepaid);
    return { replayed: false, response: await answerClaim(tx, ring, claim.claimId, 201, balance) };
  });
}

function faucetOperation(creditId: string, partnerId: string, amountCents: number): LedgerOperation {
  const flow = { code: 'fund_faucet', debit: 'faucet', credit: 'prepaid' } as const;
  return {
    operationId: `faucet/${creditId}`,
    partnerId,
    mode: 'test',
    transfers: [{ step: 'credit', phase: 'single', amountCents, ...flow }],
  };
}

/** Locks the account's usage row, so that credits are counted one after the other. @throws ApiError `rate_limited` */
async function takeTurn(tx: EntityManager, partnerId: string): Promise<void> {
  await query(tx, `SELECT FROM account_usage WHERE partner_id = $1 AND mode = 'test' FOR NO KEY UPDATE`, [
    partnerId,
  ]);
  const [row] = await query<{ credits: number; wait_seconds: number }>(
    tx,
    `SELECT count(*)::int AS credits,
       ceil(extract(epoch FROM min(created_at) + interval '1 hour' - clock_timestamp()))::int AS wait_seconds
     FROM faucet_credit WHERE partner_id = $1 AND created_at > clock_timestamp() - interval '1 hour'`,
    [partnerId],
  );
  if (row !== undefined && row.credits >= CREDITS_AN_HOUR) {
    throw new ApiError('rate_limited', {
      message: `At most ${CREDITS_AN_HOUR} faucet credits in any hour.`,
      retryAfterSeconds: Math.max(1, row.wait_seconds),
    });
  }
}
