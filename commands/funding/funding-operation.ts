import type { Fee } from '../../domain/fees.ts';
import type { Mode } from '../../domain/mode.ts';
import type { LedgerOperation, Transfer, TransferCode } from '../../ledger/operation.ts';

/** Money for a card, with its fees, from the prepaid balance. */
export interface Funding {
  operationId: string;
  partnerId: string;
  mode: Mode;
  cardId: string;
  /** What the transfer to the card is called within the operation, and its code. */
  load: { step: string; code: TransferCode };
  amountCents: number;
  fees: readonly Fee[];
}

const FEE_CODES: Record<Fee['type'], TransferCode> = {
  card_activation: 'fee_activation',
  card_funding: 'fee_funding',
};

/**
 * The ledger's side of a funding in one phase: amount and fees held (`pending`), then all posted or all released
 * (`void`); or moved at once (`single`) where nothing has to be waited for. One operation id for all of them, so each
 * phase happens once.
 */
export function fundingOperation(funding: Funding, phase: Transfer['phase']): LedgerOperation {
  const { operationId, partnerId, mode, cardId, load, amountCents, fees } = funding;
  const step = (name: string) =>
    phase === 'post' || phase === 'void'
      ? { step: `${name}:${phase}`, phase, resolves: name }
      : { step: name, phase };
  return {
    operationId,
    partnerId,
    mode,
    transfers: [
      { ...step(load.step), code: load.code, debit: 'prepaid', credit: { cardId }, amountCents },
      ...fees.map(
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
