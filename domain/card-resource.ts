import { z } from 'zod';
import { CardStatus } from './card-status.ts';
import type { Fee } from './fees.ts';
import { Mode } from './mode.ts';

/** A card as partners see it (partner-api.md, "Card"; decisions.md, "Resources"). */
export const CardResource = z.object({
  id: z.string(),
  object: z.literal('card'),
  status: CardStatus,
  balance: z.int().meta({ description: 'Cents on the card.' }),
  currency: z.literal('USD'),
  external_ref: z.string(),
  card_name: z.string().nullable(),
  cardholder_first_name: z.string().nullable(),
  cardholder_last_name: z.string().nullable(),
  email: z.string().nullable(),
  product_code: z.string(),
  network: z.string(),
  last4: z.string().nullable(),
  exp_month: z.int().nullable(),
  exp_year: z.int().nullable(),
  mode: Mode,
  failure_code: z.string().nullable(),
  created: z.iso.datetime(),
});
export type CardResource = z.infer<typeof CardResource>;

/** A row of table `card`, as the driver gives it. */
export interface CardRow {
  id: string;
  partner_id: string;
  mode: Mode;
  status: CardStatus;
  external_ref: string;
  card_name: string | null;
  cardholder_first_name: string | null;
  cardholder_last_name: string | null;
  email: string | null;
  product_code: string;
  network: string;
  network_card_id: string | null;
  last4: string | null;
  exp_month: number | null;
  exp_year: number | null;
  failure_code: string | null;
  funding_cents: string;
  fees: Fee[];
  overdue_since: string | null;
  created_at: string;
}

/** @param balanceCents what the ledger says is on the card. */
export function presentCard(row: CardRow, balanceCents: number): CardResource {
  return {
    id: row.id,
    object: 'card',
    status: row.status,
    balance: balanceCents,
    currency: 'USD',
    external_ref: row.external_ref,
    card_name: row.card_name,
    cardholder_first_name: row.cardholder_first_name,
    cardholder_last_name: row.cardholder_last_name,
    email: row.email,
    product_code: row.product_code,
    network: row.network,
    last4: row.last4,
    exp_month: row.exp_month,
    exp_year: row.exp_year,
    mode: row.mode,
    failure_code: row.failure_code,
    created: new Date(row.created_at).toISOString(),
  };
}
