import { z } from 'zod';
import { Fee } from '../../domain/fees.ts';
import { AmountCents, ObjectType } from '../../domain/fields.ts';
import { Mode } from '../../domain/mode.ts';
import type { TransferDirection } from '../../domain/transfer.ts';
import type { TRANSFER_COLUMNS } from '../../platform/db/columns.ts';
import type { Row } from '../../platform/db/entities.ts';
import { TopUpFailureCode, TopUpStatus, WithdrawalFailureCode, WithdrawalStatus } from './rules.ts';

/** A top-up as partners see it (docs/partners/topups.md). */
export const TopUpResource = z
  .object({
    id: z.string().describe('Prefix `topup_`.'),
    object: ObjectType('topup'),
    card_id: z.string().describe('The card that is topped up.'),
    amount: z.int().min(1).describe('Cents that land on the card.'),
    fees: z.array(Fee).describe('Fees on top of the amount. A fee of zero is left out.'),
    total_debited: z
      .int()
      .min(1)
      .describe(
        'The amount and its fees, in cents: held while pending, debited on success, released on failure.',
      ),
    status: TopUpStatus,
    failure_code: TopUpFailureCode.nullable().describe('Why the top-up failed. Null unless it is `failed`.'),
    card_balance: z
      .int()
      .min(0)
      .describe(
        "The card's balance in cents when the top-up completed. While it is pending, the current balance.",
      ),
    mode: Mode,
    created: z.iso.datetime().describe('When you requested the top-up.'),
    completed_at: z.iso
      .datetime()
      .nullable()
      .describe('When the top-up succeeded or failed. Null while it is pending.'),
  })
  .meta({ id: 'Topup', description: 'Money that moves from your balance to a card.' });
export type TopUpResource = z.infer<typeof TopUpResource>;

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

export interface TransferResources {
  topup: TopUpResource;
  withdrawal: WithdrawalResource;
}
export type TransferResource = TransferResources[TransferDirection];

/** Body of POST /cards/{cardId}/topups. */
export const TopUpRequest = z
  .strictObject({ amount: AmountCents.describe('Cents to put on the card.') })
  .meta({ id: 'CreateTopupRequest', description: 'How much to add to the card.' });

/** Body of POST /cards/{cardId}/withdrawals. */
export const WithdrawalRequest = z
  .strictObject({ amount: AmountCents.describe('Cents to take off the card.') })
  .meta({ id: 'CreateWithdrawalRequest', description: 'How much to withdraw from the card.' });

export type TransferRequest = z.infer<typeof TopUpRequest>;

/** The columns of a transfer's row that {@link presentTransfer} needs. */
export type TransferRow = Row<'card_transfer', (typeof TRANSFER_COLUMNS)[number]>;

/**
 * @param balanceCents the card's current balance in the ledger; a completed transfer has the balance at that
 * time instead
 */
export function presentTransfer<Direction extends TransferDirection>(
  row: TransferRow & { direction: Direction },
  balanceCents: number,
): TransferResources[Direction] {
  const amount = Number(row.amount_cents);
  const totalDebited = row.fees.reduce((sum, fee) => sum + fee.amount, amount);
  return {
    id: row.id,
    object: row.direction,
    card_id: row.card_id,
    amount,
    ...(row.direction === 'topup' && { fees: row.fees, total_debited: totalDebited }),
    status: row.status,
    failure_code: row.failure_code,
    card_balance: row.card_balance_cents === null ? balanceCents : Number(row.card_balance_cents),
    mode: row.mode,
    created: new Date(row.created_at).toISOString(),
    completed_at: row.completed_at === null ? null : new Date(row.completed_at).toISOString(),
    // TypeScript can't tell that only a top-up has fees, and that each direction has its own failures.
  } as TransferResources[Direction];
}
