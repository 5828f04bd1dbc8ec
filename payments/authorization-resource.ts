import { z } from 'zod';
import { AuthorizationRequest, AuthorizationStatus, DeclineReason } from '../domain/authorization.ts';
import { ObjectType, Usd } from '../domain/fields.ts';
import { Mode } from '../domain/mode.ts';
import type { AUTHORIZATION_COLUMNS } from '../platform/db/columns.ts';
import type { Row } from '../platform/db/entities.ts';
import { Merchant } from './transaction-resource.ts';

/** An authorization as partners see it (docs/partners/authorizations.md). */
export const AuthorizationResource = z
  .object({
    id: z.string().describe('Prefix `auth_`.'),
    object: ObjectType('authorization'),
    card_id: z.string().describe('The card that was used.'),
    status: AuthorizationStatus,
    amount: z
      .int()
      .min(0)
      .describe(
        'Cents authorized in total: the first amount and approved increments, less reversals. If it was declined, what was ' +
          'asked for.',
      ),
    held_amount: z.int().min(0).describe('Cents that it holds on the card now.'),
    settled_amount: z.int().min(0).describe('Cents cleared so far. They can exceed `amount`.'),
    currency: Usd,
    decline_reason: DeclineReason.nullable().describe('Why it was declined. Null unless it was.'),
    merchant: Merchant,
    requests: z
      .array(AuthorizationRequest)
      .describe('Every request for money, declined ones included: the oldest first, at most 100.'),
    expires_at: z.iso
      .datetime()
      .nullable()
      .describe('When it expires if it is still pending. Null if it was declined.'),
    mode: Mode,
    created: z.iso.datetime().describe('When it was approved or declined.'),
  })
  .meta({ id: 'Authorization', description: "A merchant's hold on a card's money." });
export type AuthorizationResource = z.infer<typeof AuthorizationResource>;

/** The columns of an authorization's row that it is presented from. */
export type AuthorizationRow = Row<'card_authorization', (typeof AUTHORIZATION_COLUMNS)[number]>;

export function presentAuthorization(row: AuthorizationRow): AuthorizationResource {
  return {
    id: row.id,
    object: 'authorization',
    card_id: row.card_id,
    status: row.status,
    amount: Number(row.amount_cents),
    held_amount: Number(row.held_cents),
    settled_amount: Number(row.settled_cents),
    currency: 'USD',
    decline_reason: row.decline_reason,
    merchant: {
      name: row.merchant_name,
      category_code: row.merchant_category_code,
      city: row.merchant_city,
      country: row.merchant_country,
    },
    requests: row.requests,
    expires_at: row.expires_at === null ? null : new Date(row.expires_at).toISOString(),
    mode: row.mode,
    created: new Date(row.created_at).toISOString(),
  };
}
