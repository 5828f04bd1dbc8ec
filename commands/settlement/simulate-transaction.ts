import type { CommandContext } from '../command-context.ts';
import { lockTestTerms } from '../funding/test-terms.ts';
import {
  answerOnce,
  type KeyedAnswer,
  type KeyedRequest,
  keepAnswer,
} from '../idempotency/answered-claim.ts';
import { settleTransaction } from './settle-transactions.ts';
import type { Settlement } from './settlement.ts';

/**
 * Settles a simulated transaction under an Idempotency-Key. A card that is not active is an answer too.
 * @throws ApiError `card_not_found`, `validation_failed`, `idempotency_conflict`
 */
export function simulateTransaction(
  context: CommandContext,
  request: KeyedRequest,
  settlement: Settlement,
): Promise<KeyedAnswer> {
  return answerOnce(context, request, async (tx) => {
    const locked = await lockTestTerms(tx, context.ring, request, { counts: false });
    if ('replayed' in locked) return locked;
    const { transaction } = await settleTransaction(tx, settlement);
    return keepAnswer(tx, context.ring, request, 201, transaction);
  });
}
