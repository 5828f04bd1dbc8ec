import { randomUUID } from 'node:crypto';
import { of, WITHDRAWAL_COLUMNS } from '../../db/columns.ts';
import { query } from '../../db/sql.ts';
import type { Mode } from '../../domain/mode.ts';
import type { WithdrawalRow } from '../../resources/withdrawal.ts';
import { asOwner } from './postgres.ts';
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

/** The events of withdrawals that the account was sent, oldest first. */
export async function withdrawalEvents(stack: TestStack, { partner }: Cardholder) {
  const rows = await asOwner<{ body: string }>(
    stack,
    `SELECT body FROM event WHERE partner_id = $1 AND type LIKE 'withdrawal.%' ORDER BY id`,
    [partner.id],
  );
  return rows.map(({ body }) => JSON.parse(body));
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
