import { randomUUID } from 'node:crypto';
import type { ApiError } from '../../../domain/api-error.ts';
import type { CardStatus } from '../../../domain/card-status.ts';
import type { Tenant } from '../../../domain/mode.ts';
import type { PaymentMerchant } from '../../../domain/payment.ts';
import { NOWHERE } from '../../../domain/payment.ts';
import { applyPosting } from '../../../ledger/apply-posting.ts';
import type { MessageQueue } from '../../../payments/message-queue.ts';
import { type MessageOutcome, type MessageToTake, takeMessages } from '../../../payments/take-messages.ts';
import { presentTransaction, type TransactionResource } from '../../../payments/transaction-resource.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import type { Transactor } from '../../../platform/db/sql.ts';
import { forkOf } from '../ledger/open-ledger.ts';
import type { TestCommands } from './open-commands.ts';

/** A card as its issuance, and what came after it, left it: with this balance, from the account's own. */
export async function seedCard(
  { context, owner }: TestCommands,
  { partnerId, mode }: Tenant,
  card: { status?: CardStatus; balanceCents?: number } = {},
): Promise<string> {
  const { status = 'active', balanceCents = 0 } = card;
  const cardId = newId('card');
  await owner.query(
    `INSERT INTO card (id, partner_id, mode, status, external_ref, product_code, network, network_card_id,
       failure_code, funding_cents, fees, created_at)
     VALUES ($1, $2, $3, $4, $5, 'USD', 'visa', $6, CASE $4 WHEN 'failed' THEN 'issuance_failed' END, 1000, '[]', now())`,
    [cardId, partnerId, mode, status, randomUUID(), `net_${cardId}`],
  );
  if (balanceCents === 0) return cardId;
  const { outcome } = await applyPosting(forkOf(context.orm), {
    operationId: `seed/${cardId}`,
    partnerId,
    mode,
    transfers: [
      {
        ...{ step: 'load', code: 'issue_load', phase: 'single', debit: 'prepaid', credit: { cardId } },
        amountCents: balanceCents,
      },
    ],
  });
  if (outcome !== 'applied') throw new Error(`the account can not pay for the card: ${outcome}`);
  return cardId;
}

export interface Settled extends Tenant {
  cardId: string;
  networkTransactionId: string;
  networkPaymentId: string | null;
  type: 'purchase' | 'decline' | 'refund';
  amountCents: number;
  forced: boolean;
  merchant: PaymentMerchant;
}

/** What the network settles unless told otherwise: a purchase of 100 cents under an id of its own. */
export function settlementOf(tenant: Tenant, cardId: string, more: Partial<Settled> = {}): Settled {
  return {
    partnerId: tenant.partnerId,
    mode: tenant.mode,
    cardId,
    networkTransactionId: randomUUID(),
    networkPaymentId: null,
    type: 'purchase',
    amountCents: 100,
    merchant: NOWHERE,
    forced: true,
    ...more,
  };
}

/** The message that says so. */
export function messageOf({ partnerId, mode, cardId, forced, ...said }: Settled): MessageToTake {
  const { networkTransactionId: id, networkPaymentId, type, amountCents, merchant } = said;
  return {
    partnerId,
    mode,
    cardId,
    simulated: {
      message: { id, type, amountCents, isFinal: true, merchant },
      networkPaymentId: networkPaymentId ?? id,
      ttlMs: 0,
      forced,
    },
    recorded: mode === 'test' ? null : { networkCardId: `net_${cardId}`, said: { ...said, cardId, forced } },
  };
}

/** What became of it. A repeated one has only its id. */
export function settledAs(outcome: MessageOutcome): { id: string; replayed: boolean } | ApiError {
  if ('refused' in outcome) return outcome.refused;
  if ('answered' in outcome) return { id: outcome.answered.transactionId ?? '', replayed: true };
  if ('waits' in outcome) throw new Error(outcome.waits);
  return { id: outcome.taken.transactions[0]?.id ?? '', replayed: false };
}

/** Settles through a queue. @throws ApiError */
export function settler(queue: MessageQueue) {
  return {
    async settle(settled: Settled) {
      const outcome = await queue.take(messageOf(settled));
      if ('refused' in outcome) throw outcome.refused;
      const [row] = 'taken' in outcome ? outcome.taken.transactions : [];
      const known = 'answered' in outcome ? { id: outcome.answered.transactionId ?? '' } : null;
      const transaction: Partial<TransactionResource> = row ? presentTransaction(row) : (known ?? {});
      return { transaction, replayed: known !== null };
    },
  };
}

/** Settles in a transaction. @throws ApiError */
export async function settleOne(tx: Transactor, settled: Settled): Promise<TransactionResource> {
  const [outcome] = await takeMessages(tx, [messageOf(settled)]);
  if (outcome !== undefined && 'refused' in outcome) throw outcome.refused;
  const [row] = outcome !== undefined && 'taken' in outcome ? outcome.taken.transactions : [];
  if (row === undefined) throw new Error('it was settled before');
  return presentTransaction(row);
}
