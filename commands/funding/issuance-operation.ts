import type { LedgerOperation, Transfer } from '../../ledger/operation.ts';
import type { CardRow } from '../../resources/card.ts';
import { fundingOperation } from './funding-operation.ts';

/** The ledger's side of an issuance in one phase. */
export function issuanceOperation(
  card: Pick<CardRow, 'id' | 'partner_id' | 'mode' | 'funding_cents' | 'fees'>,
  phase: Transfer['phase'],
): LedgerOperation {
  return fundingOperation(
    {
      operationId: `issue/${card.id}`,
      partnerId: card.partner_id,
      mode: card.mode,
      cardId: card.id,
      load: { step: 'load', code: 'issue_load' },
      amountCents: Number(card.funding_cents),
      fees: card.fees,
    },
    phase,
  );
}
