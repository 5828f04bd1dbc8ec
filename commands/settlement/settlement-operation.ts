import type { LedgerOperation, Transfer } from '../../ledger/operation.ts';
import type { TransactionRow } from '../../resources/transaction.ts';

/**
 * The ledger's side of a transaction: its amount between card (or, where the card is blocked, prepaid balance) and
 * network, and its fees. Null where no money moves.
 */
export function settlementOperation(row: TransactionRow): LedgerOperation | null {
  const transfers = [
    ...(row.type === 'decline' ? [] : [amountTransfer(row)]),
    ...row.fees.map(
      ({ type, amount }): Transfer => ({
        step: 'fee',
        code: type === 'decline' ? 'fee_decline' : 'fee_transaction',
        phase: 'single',
        debit: 'prepaid',
        credit: 'fee_revenue',
        amountCents: amount,
      }),
    ),
  ];
  if (transfers.length === 0) return null;
  return { operationId: `settle/${row.id}`, partnerId: row.partner_id, mode: row.mode, transfers };
}

function amountTransfer({ type, charged_to, card_id: cardId, amount_cents }: TransactionRow): Transfer {
  const isLate = charged_to === 'partner_balance';
  const own = isLate ? 'prepaid' : { cardId };
  const common = { step: 'amount', phase: 'single', amountCents: Number(amount_cents) } as const;
  return type === 'refund'
    ? { ...common, code: isLate ? 'late_refund' : 'refund', debit: 'network', credit: own }
    : { ...common, code: isLate ? 'late_debit' : 'purchase', debit: own, credit: 'network' };
}
