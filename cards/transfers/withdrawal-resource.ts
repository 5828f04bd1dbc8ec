import { z } from 'zod';
import { AmountCents, ObjectType } from '../../domain/fields.ts';
import { Mode } from '../../domain/mode.ts';
import type { WITHDRAWAL_COLUMNS } from '../../platform/db/columns.ts';
import type { Row } from '../../platform/db/entities.ts';
import { WithdrawalFailureCode, WithdrawalStatus } from './withdrawal-rules.ts';

/** A withdrawal as partners see it (docs/partners/withdrawals.md). */
export const WithdrawalResource = z
  .object({
    id: z.string().describe('Prefix `wdr_`.'),
    object: ObjectType('withdrawal'),
    card_id: z.string().describe('The card that the money comes from.'),
    amount: z
      .int()
      .min(1)
      .describe(
        'Cents: held on the card while pending, added to your balance on success, released on failure.',
      ),
    status: WithdrawalStatus,
    failure_code: WithdrawalFailureCode.nullable().describe(
      'Why the withdrawal failed. Null unless it is `failed`.',
    ),
    card_balance: z
      .int()
      .min(0)
      .describe(
        "The card's balance in cents when the withdrawal completed. While it is pending, the current balance.",
      ),
    mode: Mode,
    created: z.iso.datetime().describe('When you requested the withdrawal.'),
    completed_at: z.iso
      .datetime()
      .nullable()
      .describe('When the withdrawal succeeded or failed. Null while it is pending.'),
  })
  .meta({ id: 'Withdrawal', description: 'Money that moves from a card back to your balance.' });
export type WithdrawalResource = z.infer<typeof WithdrawalResource>;

/** The columns of a withdrawal's row that {@link presentWithdrawal} needs. */
export type WithdrawalRow = Row<'withdrawal', (typeof WITHDRAWAL_COLUMNS)[number]>;

/** Body of POST /cards/{cardId}/withdrawals. */
export const WithdrawalRequest = z
  .strictObject({
    amount: AmountCents.describe('Cents to take off the card.'),
  })
  .meta({ id: 'CreateWithdrawalRequest', description: 'How much to withdraw from the card.' });
export type WithdrawalRequest = z.infer<typeof WithdrawalRequest>;

/**
 * @param balanceCents the card's current balance in the ledger; a completed withdrawal has the balance at that time instead
 */
export function presentWithdrawal(row: WithdrawalRow, balanceCents: number): WithdrawalResource {
  return {
    id: row.id,
    object: 'withdrawal',
    card_id: row.card_id,
    amount: Number(row.amount_cents),
    status: row.status,
    failure_code: row.failure_code,
    card_balance: row.card_balance_cents === null ? balanceCents : Number(row.card_balance_cents),
    mode: row.mode,
    created: new Date(row.created_at).toISOString(),
    completed_at: row.completed_at === null ? null : new Date(row.completed_at).toISOString(),
  };
}
