import type { LedgerAccount, Posting, Transfer, TransferCode } from '../../../ledger/posting.ts';

/** What the chart of the design says: debited kind, credited kind. */
export const FLOWS: Record<TransferCode, readonly [string, string]> = {
  fund_faucet: ['faucet', 'prepaid'],
  fund_usdt: ['crypto_clearing', 'prepaid'],
  fund_test_usdt: ['faucet', 'prepaid'],
  issue_load: ['prepaid', 'card'],
  topup: ['prepaid', 'card'],
  fee_activation: ['prepaid', 'fee_revenue'],
  fee_funding: ['prepaid', 'fee_revenue'],
  authorization: ['card', 'network'],
  withdrawal: ['card', 'prepaid'],
  purchase: ['card', 'network'],
  refund: ['network', 'card'],
  fee_transaction: ['prepaid', 'fee_revenue'],
  fee_decline: ['prepaid', 'fee_revenue'],
  block_release: ['card', 'prepaid'],
  late_debit: ['prepaid', 'network'],
  late_refund: ['network', 'prepaid'],
  adjustment_credit: ['adjustment', 'prepaid'],
  adjustment_debit: ['prepaid', 'adjustment'],
};

/** A transfer between the accounts its code is for; the step is the code unless given. */
export function transfer(
  code: TransferCode,
  amountCents: number,
  more: Partial<Transfer> & { cardId?: string } = {},
): Transfer {
  const { cardId = 'card_1', ...rest } = more;
  const [debit, credit] = FLOWS[code].map((kind) => (kind === 'card' ? { cardId } : (kind as LedgerAccount)));
  return {
    step: code,
    code,
    phase: 'single',
    debit: debit as LedgerAccount,
    credit: credit as LedgerAccount,
    amountCents,
    ...rest,
  };
}

export function operation(operationId: string, ...transfers: Transfer[]): Posting {
  return { operationId, partnerId: 'prt_1', mode: 'test', transfers };
}

/** The transfers that resolve those of a hold, each with its whole amount. */
export function resolve(phase: 'post' | 'void', held: readonly Transfer[]): Transfer[] {
  return held.map((pending) => ({
    ...pending,
    step: `${phase}:${pending.step}`,
    phase,
    resolves: pending.step,
  }));
}

/** What funding a card holds: the amount and its fees. */
export function cardHold(loadCents: number, feeCents: number, cardId = 'card_1'): Transfer[] {
  return [
    transfer('issue_load', loadCents, { phase: 'pending', cardId }),
    transfer('fee_funding', feeCents, { phase: 'pending' }),
  ];
}
