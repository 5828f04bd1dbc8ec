import { randomUUID } from 'node:crypto';
import type { Settlement } from '../../../commands/settlement/settlement.ts';
import type { Tenant } from '../../../domain/tenant.ts';
import { NO_MERCHANT } from '../../../resources/transaction.ts';

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
