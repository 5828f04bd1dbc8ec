import { transaction } from '../db/transaction.ts';
import { ApiError } from '../domain/api-error.ts';
import { presentError } from '../domain/error-body.ts';
import { answerClaim } from './answer-claim.ts';
import { type ClaimRequest, claimIdempotencyKey } from './claim-idempotency-key.ts';
import type { CommandContext } from './command-context.ts';
import type { StoredResponse } from './idempotency-response.ts';
import { settleTransactions } from './settle-transactions.ts';
import type { Settlement } from './settlement.ts';

/**
 * Settles a simulated transaction under an Idempotency-Key: claim, settlement and answer are one transaction, so a retry
 * finds either nothing or the answer. A card that is not active is an answer too; what gets 400 or 404 is not kept.
 * @throws ApiError `card_not_found`, `validation_failed`, `idempotency_in_flight`, `idempotency_conflict`
 */
export function simulateTransaction(
  { orm, ring }: CommandContext,
  request: Omit<ClaimRequest, 'operation' | 'cardId' | 'sealedRequest' | 'leaseMs'>,
  settlement: Settlement,
): Promise<{ replayed: boolean; response: StoredResponse }> {
  return transaction(orm, async (tx) => {
    const claim = await claimIdempotencyKey(tx, ring, {
      ...request,
      operation: 'simulate_transaction',
      cardId: settlement.cardId,
      sealedRequest: null,
      leaseMs: 0,
    });
    if (claim.outcome === 'replay') return { replayed: true, response: claim.response };
    const [outcome] = await settleTransactions(tx, [settlement]);
    if (outcome === undefined) throw new Error('a settlement has an outcome');
    if (!(outcome instanceof ApiError)) {
      return {
        replayed: false,
        response: await answerClaim(tx, ring, claim.claimId, 201, outcome.transaction),
      };
    }
    if (outcome.code !== 'invalid_state') throw outcome;
    const body = presentError(outcome, request.requestId);
    return { replayed: false, response: await answerClaim(tx, ring, claim.claimId, outcome.status, body) };
  });
}
