import { notifyEvents } from '../../db/notifications.ts';
import { transaction } from '../../db/transaction.ts';
import { ApiError } from '../../domain/api-error.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';
import { Refusal } from '../idempotency/refusal.ts';
import { settleTransaction } from './settle-transactions.ts';
import type { Settled, Settlement } from './settlement.ts';

/**
 * Settles what an operator says the simulated network settled. Sent again it gives the same transaction.
 * @throws Refusal where the settlement is refused: the card is not issued, or the id was used for something else.
 */
export async function sendNetworkEvent({ orm, actor }: Operator, settlement: Settlement): Promise<Settled> {
  const settled = await transaction(orm, async (tx) => {
    const one = await settleTransaction(tx, settlement);
    if (!one.replayed) {
      const { cardId, networkTransactionId, type, amountCents, forced } = settlement;
      const detail = { cardId, networkTransactionId, type, amountCents, forced };
      recordAudit(tx, actor, 'network-event.send', one.transaction.id, detail);
    }
    return one;
  }).catch((error: unknown) => {
    if (error instanceof ApiError) throw new Refusal(`Nothing was settled. ${error.message}`);
    throw error;
  });
  await notifyEvents(orm);
  return settled;
}
