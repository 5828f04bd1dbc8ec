import { type Fee, insufficientFunds } from '../domain/fees.ts';
import type { Mode, Tenant } from '../domain/mode.ts';
import type { LedgerResult } from '../ledger/apply-posting.ts';
import { readBalance, readCardBalance } from '../ledger/balances.ts';
import type { Posting, Transfer, TransferCode } from '../ledger/posting.ts';
import type { Transactor } from '../platform/db/sql.ts';
import type { StoredResponse } from '../requests/response.ts';
import { insufficientCardBalance } from './transfers/rules.ts';

/** Money between the prepaid balance and a card, with its fees. */
export interface Funding {
  operationId: string;
  partnerId: string;
  mode: Mode;
  cardId: string;
  /** Where the amount comes from; the other of the two gets it. Fees come from the prepaid balance. */
  from: 'prepaid' | 'card';
  /** The step and the code of the amount's transfer. */
  step: string;
  code: TransferCode;
  amountCents: number;
  fees: readonly Fee[];
}

/**
 * How a funding began in live mode. `held`: the network decides next; `asked` is the request to it, or null
 * if an earlier run made the hold. `answered`: it is over and its claim has a response, which is included if
 * this run stored it.
 */
export type BegunFunding<Asked> =
  | { state: 'held'; asked: Asked | null }
  | { state: 'answered'; response: StoredResponse | null };

/** The row of a card or a transfer as JSON, and what only a pending one has. */
export interface InsertedFunding extends Tenant {
  row: string;
  pendingClaimId: string | null;
  asked: string | null;
}

const FEE_CODES: Record<Fee['type'], TransferCode> = {
  card_activation: 'fee_activation',
  card_funding: 'fee_funding',
};

/**
 * The ledger's side in one phase: amount and fees held (`pending`), then all posted or all released (`void`);
 * or moved at once (`single`) if there is nothing to wait for. One operation id for all of them, so each
 * phase happens once.
 */
export function fundingPosting(funding: Funding, phase: Transfer['phase']): Posting {
  const { operationId, partnerId, mode, cardId, code, amountCents, fees } = funding;
  const card = { cardId };
  const flow =
    funding.from === 'prepaid'
      ? { debit: 'prepaid' as const, credit: card }
      : { debit: card, credit: 'prepaid' as const };
  const step = (name: string) =>
    phase === 'post' || phase === 'void'
      ? { step: `${name}:${phase}`, phase, resolves: name }
      : { step: name, phase };
  return {
    operationId,
    partnerId,
    mode,
    transfers: [
      { ...step(funding.step), ...flow, code, amountCents },
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

/**
 * @throws ApiError `insufficient_funds` or, for money from a card, `insufficient_card_balance`, with what was
 * needed and what was available
 */
export async function requireFunds(tx: Transactor, funding: Funding, moved: LedgerResult): Promise<void> {
  if (moved.outcome !== 'insufficient_funds') return;
  const { partnerId, mode, cardId, from, amountCents, fees } = funding;
  // The ledger has locked the balance, so this is what it decided on.
  if (from === 'card') {
    const { balanceCents, heldCents } = await readCardBalance(tx, { partnerId, mode }, cardId);
    throw insufficientCardBalance(amountCents, balanceCents - heldCents);
  }
  const { availableCents } = await readBalance(tx, partnerId, mode);
  const totalDebitedCents = fees.reduce((sum, fee) => sum + fee.amount, amountCents);
  throw insufficientFunds(totalDebitedCents, availableCents);
}
