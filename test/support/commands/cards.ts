import { randomUUID } from 'node:crypto';
import type { CardStatus } from '../../../domain/card-status.ts';
import type { Tenant } from '../../../domain/mode.ts';
import { applyPosting } from '../../../ledger/apply-posting.ts';
import type { Settlement } from '../../../payments/decide-settlements.ts';
import { NO_MERCHANT } from '../../../payments/transaction-resource.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
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

/** What the network settles unless told otherwise: a purchase of 100 cents under an id of its own. */
export function settlementOf(tenant: Tenant, cardId: string, more: Partial<Settlement> = {}): Settlement {
  return {
    partnerId: tenant.partnerId,
    mode: tenant.mode,
    cardId,
    networkTransactionId: randomUUID(),
    type: 'purchase',
    amountCents: 100,
    merchant: NO_MERCHANT,
    forced: true,
    simulated: false,
    ...more,
  };
}
