import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import type { Tenant } from '../domain/mode.ts';
import type { PaymentMerchant } from '../domain/payment.ts';
import type { TransactionType } from '../domain/transaction.ts';
import { type Transactor, writeStatement } from '../platform/db/sql.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { type KeyedResponse, respondOnce } from '../requests/respond-once.ts';
import type { MessageQueue } from './message-queue.ts';
import { REFUNDED, type RefundedTransaction } from './refunded.ts';
import { type Simulated, type TakenMessage, takeSimulated } from './take-simulated.ts';
import { lockTestCard } from './terms.ts';
import { presentTransaction, type TransactionResource } from './transaction-resource.ts';
import { respondWithBooking } from './write-bookings.ts';

/** A transaction that a partner simulates on a test card. */
export interface TransactionAsked extends Tenant {
  cardId: string;
  /** What names it. */
  messageId: string;
  type: TransactionType;
  amountCents: number;
  /** As if the network had reported it, whatever the card's status. */
  forced: boolean;
  /** The purchase that a refund gives money back for; undefined if it names none. */
  refundedTransactionId: string | undefined;
  merchant: PaymentMerchant;
}

/**
 * Simulates a transaction in a database transaction that others may share.
 * @throws ApiError `card_not_found`, `invalid_state`, `validation_failed`
 */
export async function simulateTogether(
  messages: MessageQueue,
  asked: TransactionAsked,
): Promise<TransactionResource> {
  const { partnerId, mode, cardId, refundedTransactionId } = asked;
  const message = {
    partnerId,
    mode,
    cardId,
    refundedTransactionId,
    simulated: toSimulated(asked),
    recorded: null,
  };
  const outcome = await messages.take(message);
  if ('refused' in outcome) throw outcome.refused;
  if ('taken' in outcome) return toResource(outcome.taken);
  throw new Error('a transaction was not simulated');
}

/**
 * Simulates a transaction under an Idempotency-Key. It runs alone, since the claim must be in its transaction.
 * If the card is not active, the refusal is an answer too.
 * @throws ApiError `card_not_found`, `validation_failed`, `idempotency_conflict`
 */
export function simulateTransaction(
  context: CommandContext,
  request: KeyedRequest,
  asked: TransactionAsked,
): Promise<KeyedResponse> {
  return respondOnce(context, request, async (tx) => {
    const command = { tx, ring: context.ring };
    const terms = await lockTestCard(command, request, asked.type === 'purchase');
    if ('replayed' in terms) return terms;
    const refund = asked.type === 'refund' ? await readRefund(tx, asked) : {};
    const taken = takeSimulated({ ...terms, ...refund }, toSimulated(asked));
    const body = JSON.stringify(toResource(taken));
    return respondWithBooking(command, request, taken, { status: 201, body });
  });
}

function toSimulated(asked: TransactionAsked): Simulated {
  const { type, amountCents, forced, messageId: id, merchant } = asked;
  return {
    message: { id, type, amountCents, isFinal: true, merchant },
    networkPaymentId: null,
    ttlMs: 0,
    forced,
    isSimulation: !forced,
    namesPurchase: asked.refundedTransactionId !== undefined,
  };
}

function toResource({ transactions: [row] }: TakenMessage): TransactionResource {
  if (row === undefined) throw new Error('a simulated transaction is not booked');
  return presentTransaction(row);
}

/** What a refund is decided on, too, under the card's lock. */
async function readRefund(tx: Transactor, { refundedTransactionId, ...about }: TransactionAsked) {
  const { partnerId, mode, cardId } = about;
  const [row] = await refundTerms(tx, { partnerId, mode, cardId, refundedId: refundedTransactionId ?? '' });
  if (row === undefined) throw new ApiError('card_not_found');
  return { arrivingCents: BigInt(row.arriving), refunded: row.refunded };
}

const refundTerms = writeStatement(
  (_, { partnerId, mode, cardId, refundedId }: Tenant & { cardId: string; refundedId: string }) => sql<{
    arriving: string;
    refunded: RefundedTransaction | null;
  }>`
    SELECT coalesce((SELECT sum(o.amount_cents) FROM card_transfer o WHERE o.card_id = ${cardId}
        AND o.partner_id = ${partnerId} AND o.mode = ${mode} AND o.direction = 'topup' AND o.status = 'pending'), 0) AS arriving,
      (SELECT ${REFUNDED} FROM card_transaction f WHERE f.id = ${refundedId} AND f.card_id = ${cardId} AND f.partner_id = ${partnerId}
        AND f.mode = ${mode}) AS refunded`,
);
