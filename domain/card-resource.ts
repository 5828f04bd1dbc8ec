import { z } from 'zod';
import { CardStatus } from './card-status.ts';
import type { Fee } from './fees.ts';
import { ObjectType, Usd } from './fields.ts';
import { Mode } from './mode.ts';

/** Why a card that was accepted could not be issued (decisions.md, "Resources"). */
export const CardFailureCode = z.enum(['provider_declined', 'issuance_failed', 'operator_failed']).meta({
  id: 'CardFailureCode',
  description:
    '`provider_declined`: the card network refused. `issuance_failed`: the card network accepted the card, then could ' +
    'not issue it. `operator_failed`: the card network never answered, and we found that there is no card.',
});
export type CardFailureCode = z.infer<typeof CardFailureCode>;

/** A card as partners see it (partner-api.md, "Card"; decisions.md, "Resources"). */
export const CardResource = z
  .object({
    id: z.string().describe('Prefix `card_`.'),
    object: ObjectType('card'),
    status: CardStatus,
    balance: z.int().min(0).describe('Cents on the card.'),
    currency: Usd,
    external_ref: z.string().describe('Your own id for the card.'),
    card_name: z.string().nullable().describe('Your label for the card.'),
    cardholder_first_name: z.string().nullable().describe("The cardholder's first name."),
    cardholder_last_name: z.string().nullable().describe("The cardholder's last name."),
    email: z.string().nullable().describe("The cardholder's email address."),
    product_code: z.string().describe('The product the card was issued as. See `GET /products`.'),
    network: z.string().describe('The card scheme, such as `visa`.'),
    last4: z
      .string()
      .nullable()
      .describe('The last four digits of the card number. Null until the card is issued.'),
    exp_month: z
      .int()
      .min(1)
      .max(12)
      .nullable()
      .describe('The month in which the card expires. Null until the card is issued.'),
    exp_year: z
      .int()
      .min(2000)
      .max(9999)
      .nullable()
      .describe('The year in which the card expires. Null until the card is issued.'),
    mode: Mode,
    failure_code: CardFailureCode.nullable().describe(
      'Why the card could not be issued. Null unless it is `failed`.',
    ),
    created: z.iso.datetime().describe('When you asked for the card.'),
  })
  .meta({ id: 'Card', description: 'A virtual USD card.' });
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
  failure_code: CardFailureCode | null;
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
