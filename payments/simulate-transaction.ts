import { lockTestTerms } from '../cards/terms.ts';
import { ApiError } from '../domain/api-error.ts';
import { Refusal } from '../domain/refusal.ts';
import { notifyEvents } from '../platform/db/notifications.ts';
import { transaction } from '../platform/db/transaction.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';
import { type KeyedResponse, respondOnce, respondWith } from '../requests/respond-once.ts';
import type { Settled, Settlement } from './decide-settlements.ts';
import type { AuthorizationMessage, MessageOutcome } from './message-record.ts';
import { settleTransaction } from './settle-transactions.ts';
import { AuthorizationUnknown, takeMessage } from './take-message.ts';

/**
 * Settles a partner's simulated transaction under an Idempotency-Key. It runs alone, since the claim must be
 * in its transaction. If the card is not active, the refusal is an answer too.
 * @throws ApiError `card_not_found`, `validation_failed`, `idempotency_conflict`
 */
export function simulateTransaction(
  context: CommandContext,
  request: KeyedRequest,
  settlement: Settlement,
): Promise<KeyedResponse> {
  return respondOnce(context, request, async (tx) => {
    const locked = await lockTestTerms({ tx, ring: context.ring }, request, { counts: false });
    if ('replayed' in locked) return locked;
    const { transaction } = await settleTransaction(tx, settlement);
    return respondWith({ tx, ring: context.ring }, request, 201, transaction);
  });
}

/**
 * Settles what an operator reports for the simulated network. Sent again, it returns the same transaction.
 * @throws Refusal if the settlement is refused: the card is not issued, or the id was used for something else
 */
export async function sendNetworkEvent({ orm, actor }: Operator, settlement: Settlement): Promise<Settled> {
  const settled = await transaction(orm, async (tx) => {
    const one = await settleTransaction(tx, settlement);
    if (!one.replayed) {
      const { cardId, networkTransactionId, type, amountCents, forced } = settlement;
      const detail = { cardId, networkTransactionId, type, amountCents, forced };
      recordAudit(tx, { actor, action: 'network-event.send', subject: one.transaction.id, detail });
    }
    return one;
  }).catch((error: unknown) => {
    if (error instanceof ApiError) throw new Refusal(`Nothing was settled. ${error.message}`);
    throw error;
  });
  await notifyEvents(orm);
  return settled;
}

/**
 * Takes what an operator says about an authorization for the simulated network. Sent again, it returns the
 * same.
 * @throws Refusal if it can't be booked
 */
export async function sendAuthorizationEvent(
  { orm, actor }: Operator,
  message: AuthorizationMessage,
  ttlMs: number,
): Promise<MessageOutcome> {
  const outcome = await transaction(orm, async (tx) => {
    const taken = await takeMessage(tx, message, { ttlMs, lockWaitMs: null });
    if (!taken.replayed) {
      const { cardId, messageId, networkAuthorizationId, type, amountCents } = message;
      const subject = taken.transaction?.id ?? taken.authorization?.id ?? cardId;
      const detail = {
        cardId,
        networkTransactionId: messageId,
        networkAuthorizationId,
        type,
        amountCents,
      };
      recordAudit(tx, { actor, action: 'network-event.send', subject, detail });
    }
    return taken;
  }).catch((error: unknown) => {
    if (error instanceof ApiError) throw new Refusal(`Nothing was changed. ${error.message}`);
    if (error instanceof AuthorizationUnknown) {
      throw new Refusal(
        `Nothing was changed. We do not know the authorization ${message.networkAuthorizationId}: send its request first.`,
      );
    }
    throw error;
  });
  await notifyEvents(orm);
  return outcome;
}
