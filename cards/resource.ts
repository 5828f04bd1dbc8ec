import { z } from 'zod';
import { CardFailureCode } from '../domain/card.ts';
import { CardStatus } from '../domain/card-status.ts';
import { AmountCents, Email, Label, Line, ObjectType, Usd } from '../domain/fields.ts';
import { Mode } from '../domain/mode.ts';
import {
  completeControls,
  LimitInterval,
  type LimitSpending,
  SpendingControls,
  SpendingControlsRequest,
} from '../domain/spending-controls.ts';
import type { CARD_COLUMNS } from '../platform/db/columns.ts';
import type { Row } from '../platform/db/entities.ts';
import { inOrder, Metadata, MetadataChanges } from './metadata-rules.ts';

/** A card as partners see it (docs/partners/cards.md). */
export const CardResource = z
  .object({
    id: z.string().describe('Prefix `card_`.'),
    object: ObjectType('card'),
    status: CardStatus,
    balance: z.int().min(0).describe('Cents on the card, with what is held of them.'),
    available_balance: z
      .int()
      .min(0)
      .describe(
        'Cents that the card can spend: `balance` less what pending authorizations and withdrawals hold.',
      ),
    currency: Usd,
    external_ref: z.string().describe('Your own id for the card.'),
    card_name: z.string().nullable().describe('Your label for the card.'),
    cardholder_first_name: z.string().nullable().describe("The cardholder's first name."),
    cardholder_last_name: z.string().nullable().describe("The cardholder's last name."),
    email: z.string().nullable().describe("The cardholder's email address."),
    metadata: z.record(z.string(), z.string()).describe('What you store with the card. `{}` if nothing.'),
    spending_controls: SpendingControls.nullable().describe(
      'What merchants the card can pay, and how much. Null if nothing is restricted.',
    ),
    product_code: z.string().describe('The product the card was issued with. See `GET /products`.'),
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
    created: z.iso.datetime().describe('When you requested the card.'),
  })
  .meta({ id: 'Card', description: 'A virtual USD card.' });
export type CardResource = z.infer<typeof CardResource>;

/** The columns of a card's row that {@link presentCard} needs. */
export type CardRow = Row<'card', (typeof CARD_COLUMNS)[number]>;

/** The body of POST /cards (docs/partners/cards.md). */
export const CreateCardRequest = z
  .strictObject({
    amount: AmountCents.describe('Cents to put on the card.'),
    external_ref: Line(255).describe('Your own id for the card, unique per account and mode.'),
    product_code: Line(100)
      .optional()
      .describe('A product from `GET /products`. Leave it out to get the current one.'),
    card_name: Label(255).optional().describe('Your label for the card.'),
    cardholder_first_name: Label(100).optional().describe("The cardholder's first name."),
    cardholder_last_name: Label(100).optional().describe("The cardholder's last name."),
    email: Email.optional().describe("The cardholder's email address."),
    metadata: Metadata.optional().describe(
      'Up to 50 keys of 1 to 40 characters, with values of up to 500 characters.',
    ),
    spending_controls: SpendingControlsRequest.nullable()
      .optional()
      .describe('What merchants the card can pay, and how much.'),
  })
  .meta({ id: 'CreateCardRequest', description: 'The card to create.' });
export type CreateCardRequest = z.infer<typeof CreateCardRequest>;

/** The body of PATCH /cards/{cardId} (docs/partners/cards.md). */
export const UpdateCardRequest = z
  .strictObject({
    card_name: Label(255).nullable().optional().describe('Your label for the card. Null removes it.'),
    email: Email.nullable().optional().describe("The cardholder's email address. Null removes it."),
    metadata: MetadataChanges.nullable()
      .optional()
      .describe(
        'Keys to set. A null value removes its key, and other keys stay. Null removes all. There can be up to 50 keys ' +
          'afterwards, of 1 to 40 characters, with values of up to 500 characters.',
      ),
    spending_controls: SpendingControlsRequest.nullable()
      .optional()
      .describe(
        'What merchants the card can pay, and how much. It replaces all controls; null removes them.',
      ),
  })
  .refine((changes) => Object.keys(changes).length > 0, {
    error: 'must have at least one field',
    when: ({ issues }) => issues.length === 0,
  })
  .meta({ id: 'UpdateCardRequest', description: 'What to change.', minProperties: 1 });
export type UpdateCardRequest = z.infer<typeof UpdateCardRequest>;

/** A card's money in the ledger, in cents. */
export interface CardBalance {
  balanceCents: number;
  /** How much of it authorizations and withdrawals hold. */
  heldCents: number;
}

/** The balance of a card that no money has touched yet. */
export const EMPTY_CARD: CardBalance = { balanceCents: 0, heldCents: 0 };

export function presentCard(row: CardRow, { balanceCents, heldCents }: CardBalance): CardResource {
  return {
    id: row.id,
    object: 'card',
    status: row.status,
    balance: balanceCents,
    available_balance: balanceCents - heldCents,
    currency: 'USD',
    external_ref: row.external_ref,
    card_name: row.card_name,
    cardholder_first_name: row.cardholder_first_name,
    cardholder_last_name: row.cardholder_last_name,
    email: row.email,
    metadata: inOrder(row.metadata),
    spending_controls: completeControls(row.spending_controls),
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

/** A limit as partners see it (docs/partners/spending-controls.md). */
export const SpendingLimitResource = z
  .object({
    object: ObjectType('spending_limit'),
    source: z
      .enum(['card', 'account'])
      .describe('Whose limit it is. A limit of your account applies to each card by itself.'),
    amount: z.int().min(1).describe('Cents that can be spent in the interval.'),
    interval: LimitInterval,
    categories: z
      .array(z.string())
      .nullable()
      .describe('Merchant category codes. Only merchants with these count. Null for all.'),
    spent: z
      .int()
      .min(0)
      .describe('Cents spent in the current interval, less refunds. 0 for `per_authorization`.'),
    remaining: z
      .int()
      .min(0)
      .describe('Cents that are left: `amount` less `spent`. 0 if more was spent, which clearings can do.'),
    resets_at: z.iso
      .datetime()
      .nullable()
      .describe('When the next interval begins. Null for `per_authorization` and `all_time`.'),
  })
  .meta({ id: 'SpendingLimit', description: 'A spending limit of a card, and how much of it was used.' });
export type SpendingLimitResource = z.infer<typeof SpendingLimitResource>;

export function presentSpendingLimit(limit: LimitSpending): SpendingLimitResource {
  const { spentCents: spent } = limit;
  return {
    object: 'spending_limit',
    source: limit.source,
    amount: limit.amount,
    interval: limit.interval,
    categories: limit.categories,
    spent,
    remaining: Math.max(0, limit.amount - spent),
    resets_at: limit.endsAt?.toISOString() ?? null,
  };
}
