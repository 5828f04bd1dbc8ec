import { z } from 'zod';
import { Fee } from '../../domain/fees.ts';
import { AmountCents, ObjectType } from '../../domain/fields.ts';
import { Mode } from '../../domain/mode.ts';
import type { TOPUP_COLUMNS } from '../../platform/db/columns.ts';
import type { Row } from '../../platform/db/entities.ts';
import { TopUpFailureCode, TopUpStatus } from './top-up-rules.ts';

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

/** The columns of a top-up's row that {@link presentTopUp} needs. */
export type TopUpRow = Row<'topup', (typeof TOPUP_COLUMNS)[number]>;

/** Body of POST /cards/{cardId}/topups. */
export const TopUpRequest = z
  .strictObject({
    amount: AmountCents.describe('Cents to put on the card.'),
  })
  .meta({ id: 'CreateTopupRequest', description: 'How much to add to the card.' });
export type TopUpRequest = z.infer<typeof TopUpRequest>;

/** @param balanceCents the card's current balance in the ledger; a completed top-up has the balance at that time instead */
export function presentTopUp(row: TopUpRow, balanceCents: number): TopUpResource {
  const amount = Number(row.amount_cents);
  return {
    id: row.id,
    object: 'topup',
    card_id: row.card_id,
    amount,
    fees: row.fees,
    total_debited: row.fees.reduce((sum, fee) => sum + fee.amount, amount),
    status: row.status,
    failure_code: row.failure_code,
    card_balance: row.card_balance_cents === null ? balanceCents : Number(row.card_balance_cents),
    mode: row.mode,
    created: new Date(row.created_at).toISOString(),
    completed_at: row.completed_at === null ? null : new Date(row.completed_at).toISOString(),
  };
}
