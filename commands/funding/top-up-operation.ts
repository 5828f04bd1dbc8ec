import type { LedgerOperation, Transfer } from '../../ledger/operation.ts';
import type { TopUpRow } from '../../resources/topup.ts';
import { fundingOperation } from './funding-operation.ts';

/** The ledger's side of a top-up in one phase. */
export function topUpOperation(topUp: TopUpRow, phase: Transfer['phase']): LedgerOperation {
  return fundingOperation(
    {
      operationId: `topup/${topUp.id}`,
      partnerId: topUp.partner_id,
      mode: topUp.mode,
      cardId: topUp.card_id,
      load: { step: 'topup', code: 'topup' },
      amountCents: Number(topUp.amount_cents),
      fees: topUp.fees,
    },
    phase,
  );
}
