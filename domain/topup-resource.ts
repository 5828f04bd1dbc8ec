import { z } from 'zod';
import { Fee } from './fees.ts';
import { ObjectType } from './fields.ts';
import { Mode } from './mode.ts';

export const TopUpStatus = z.enum(['pending', 'succeeded', 'failed']).meta({
  id: 'TopupStatus',
  description:
    '`pending`: the money is held, and the card network is loading the card. `succeeded`: it is on the card. ' +
    '`failed`: it was released.',
});
export type TopUpStatus = z.infer<typeof TopUpStatus>;

/** Why a top-up that was accepted came to nothing (decisions.md, "Resources"). */
export const TopUpFailureCode = z
  .enum(['provider_declined', 'topup_failed', 'card_blocked', 'operator_failed'])
  .meta({
    id: 'TopupFailureCode',
    description:
      '`provider_declined`: the card network refused. `topup_failed`: the card network accepted the top-up, then could ' +
      'not load the card. `card_blocked`: the card was blocked while the top-up was pending. `operator_failed`: the card ' +
      'network never answered, and we found that the card was not loaded.',
  });
export type TopUpFailureCode = z.infer<typeof TopUpFailureCode>;

/** A top-up as partners see it (decisions.md, "Resources"). */
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
      .describe('Cents on the card when the top-up ended. While it is pending, cents on the card now.'),
    mode: Mode,
    created: z.iso.datetime().describe('When you asked for the top-up.'),
    completed_at: z.iso
      .datetime()
      .nullable()
      .describe('When it succeeded or failed. Null while it is pending.'),
  })
  .meta({ id: 'Topup', description: 'Money that moves from your balance to a card.' });
export type TopUpResource = z.infer<typeof TopUpResource>;

/** A row of table `topup`, as the driver gives it. */
export interface TopUpRow {
  id: string;
  partner_id: string;
  mode: Mode;
  card_id: string;
  status: TopUpStatus;
  failure_code: TopUpFailureCode | null;
  amount_cents: string;
  fees: Fee[];
  /** The card's balance when it ended; null while pending. */
  card_balance_cents: string | null;
  overdue_since: string | null;
  created_at: string;
  completed_at: string | null;
}

/** @param balanceCents what the ledger says is on the card now; a top-up that has ended keeps what it was then. */
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
