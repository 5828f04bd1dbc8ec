import { randomUUID } from 'node:crypto';
import type { WithdrawalRow } from '../../cards/transfers/withdrawal-resource.ts';
import type { Mode } from '../../domain/mode.ts';
import { of, WITHDRAWAL_COLUMNS } from '../../platform/db/columns.ts';
import { query } from '../../platform/db/sql.ts';
import type { Answer, CallOptions, TestPartner, TestStack } from './stack.ts';
import type { Cardholder } from './top-ups.ts';

/** POST /cards/{cardId}/withdrawals, with a new key unless one is given. */
export function withdraw(
  { partner, mode, cardId }: Cardholder,
  amount: unknown,
  options: Omit<CallOptions, 'mode'> = {},
): Promise<Answer> {
  return partner.call('POST', `/cards/${cardId}/withdrawals`, {
    mode,
    idempotencyKey: randomUUID(),
    body: { amount },
    ...options,
  });
}

/** Asks for a withdrawal; the last two digits of the amount choose live mode's outcome. */
export function createWithdrawal(
  partner: TestPartner,
  mode: Mode,
  cardId: string,
  amountCents: number,
): Promise<Answer> {
  return withdraw({ partner, mode, cardId }, amountCents);
}

export async function readWithdrawalRow(
  { orm }: TestStack,
  withdrawalId: string,
): Promise<WithdrawalRow | undefined> {
  const [row] = await query<WithdrawalRow>(
    orm.em.fork(),
    `SELECT ${of('w', WITHDRAWAL_COLUMNS).join(', ')} FROM withdrawal w WHERE w.id = $1`,
    [withdrawalId],
  );
  return row;
}
