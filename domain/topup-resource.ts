import { z } from 'zod';
import { Fee } from './fees.ts';
import { Mode } from './mode.ts';

export const TopUpStatus = z.enum(['pending', 'succeeded', 'failed']);
export type TopUpStatus = z.infer<typeof TopUpStatus>;

/** A top-up as partners see it (decisions.md, "Resources"). */
export const TopUpResource = z.object({
  id: z.string(),
  object: z.literal('topup'),
  card_id: z.string(),
  amount: z.int().meta({ description: 'Cents for the card.' }),
  fees: z.array(Fee),
  total_debited: z.int().meta({
    description: 'Amount and fees: held while pending, debited by a success, released by a failure.',
  }),
  status: TopUpStatus,
  failure_code: z.string().nullable(),
  card_balance: z.int().meta({ description: "The card's balance when the top-up ended; until then, now." }),
  mode: Mode,
  created: z.iso.datetime(),
  completed_at: z.iso.datetime().nullable(),
});
export type TopUpResource = z.infer<typeof TopUpResource>;

/** A row of table `topup`, as the driver gives it. */
export interface TopUpRow {
  id: string;
  partner_id: string;
  mode: Mode;
  card_id: string;
  status: TopUpStatus;
  failure_code: string | null;
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
