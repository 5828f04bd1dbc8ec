import { type Fee, insufficientFunds } from '../domain/fees.ts';
import type { Mode } from '../domain/mode.ts';
import type { LedgerResult } from '../ledger/apply-posting.ts';
import { readBalance } from '../ledger/balances.ts';
import type { Posting, Transfer, TransferCode } from '../ledger/posting.ts';
import type { Transactor } from '../platform/db/sql.ts';

/** Money for a card, with its fees, from the prepaid balance. */
export interface Funding {
  operationId: string;
  partnerId: string;
  mode: Mode;
  cardId: string;
  /** The step and the code of the transfer to the card. */
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
 * (`void`); or moved at once (`single`) if there is nothing to wait for. One operation id for all of them, so each phase
 * happens once.
 */
export function fundingPosting(funding: Funding, phase: Transfer['phase']): Posting {
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

/** @throws ApiError `insufficient_funds`, with what was needed and what was available */
export async function requireFunds(
  tx: Transactor,
  { partnerId, mode, amountCents, fees }: Funding,
  moved: LedgerResult,
): Promise<void> {
  if (moved.outcome !== 'insufficient_funds') return;
  // The ledger has locked the balance, so this is what it decided on.
  const { availableCents } = await readBalance(tx, partnerId, mode);
  const totalDebitedCents = fees.reduce((sum, fee) => sum + fee.amount, amountCents);
  throw insufficientFunds(totalDebitedCents, availableCents);
}
