import type { Fee } from '../domain/fees.ts';
import type { Mode } from '../domain/mode.ts';
import type { LedgerOperation, Transfer, TransferCode } from '../ledger/operation.ts';

interface IssuedCard {
  id: string;
  partner_id: string;
  mode: Mode;
  funding_cents: string;
  fees: Fee[];
}

const FEE_CODES: Record<Fee['type'], TransferCode> = {
  card_activation: 'fee_activation',
  card_funding: 'fee_funding',
};

/**
 * The ledger's side of an issuance in one phase: load and fees held (`pending`), then both posted or both released
 * (`void`); or moved at once (`single`) where nothing has to be waited for. One operation id for all of them, so each
 * phase happens once.
 */
export function issuanceOperation(card: IssuedCard, phase: Transfer['phase']): LedgerOperation {
  const step = (name: string) =>
    phase === 'post' || phase === 'void'
      ? { step: `${name}:${phase}`, phase, resolves: name }
      : { step: name, phase };
  return {
    operationId: `issue/${card.id}`,
    partnerId: card.partner_id,
    mode: card.mode,
    transfers: [
      {
        ...step('load'),
        code: 'issue_load',
        debit: 'prepaid',
        credit: { cardId: card.id },
        amountCents: Number(card.funding_cents),
      },
      ...card.fees.map(
        (fee): Transfer => ({
          ...step(fee.type),
          code: FEE_CODES[fee.type],
          debit: 'prepaid',
          credit: 'fee_revenue',
          amountCents: fee.amount,
        }),
      ),
    ],
  };
}
