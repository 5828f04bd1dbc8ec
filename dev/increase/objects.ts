import { randomBytes } from 'node:crypto';
import type { Increase } from 'increase';

// Increase's objects, whole, as its published types have them. What no test or reader looks at is the same in
// all of them. Card payments are in payment-objects.ts.

/** An id such as Increase makes: its kind, and 20 letters and digits. */
export function makeId(kind: string): string {
  const letters = [...randomBytes(20)].map((byte) => (byte % 36).toString(36)).join('');
  return `sandbox_${kind}_${letters}`;
}

export const makeAccount = (
  body: Increase.AccountCreateParams,
  of: { key: string | null; createdAt: string },
) =>
  ({
    id: makeId('account'),
    type: 'account',
    account_revenue_rate: null,
    bank: 'first_internet_bank',
    closed_at: null,
    created_at: of.createdAt,
    currency: 'USD',
    entity_id: body.entity_id ?? 'sandbox_entity_00000000000000000000',
    funding: 'deposits',
    idempotency_key: of.key,
    informational_entity_id: null,
    interest_rate: '0.0',
    loan: null,
    name: body.name,
    program_id: body.program_id ?? 'sandbox_program_0000000000000000000',
    status: 'open',
  }) satisfies Increase.Account;

export const makeCard = (
  body: Increase.CardCreateParams,
  of: { key: string | null; createdAt: string; last4: string; expirationYear: number },
) =>
  ({
    id: makeId('card'),
    type: 'card',
    account_id: body.account_id,
    authorization_controls: null,
    billing_address: {
      city: 'New York',
      line1: '33 Liberty Street',
      line2: null,
      postal_code: '10045',
      state: 'NY',
    },
    bin: '424242',
    created_at: of.createdAt,
    description: body.description ?? null,
    digital_wallet: null,
    entity_id: null,
    expiration_month: 11,
    expiration_year: of.expirationYear,
    idempotency_key: of.key,
    last4: of.last4,
    status: 'active',
  }) satisfies Increase.Card;

export const makeTransfer = (
  body: Increase.AccountTransferCreateParams,
  of: { key: string | null; createdAt: string },
) =>
  ({
    id: makeId('account_transfer'),
    type: 'account_transfer',
    account_id: body.account_id,
    amount: body.amount,
    approval: null,
    cancellation: null,
    created_at: of.createdAt,
    created_by: { category: 'api_key', api_key: { description: 'the service' } },
    currency: 'USD',
    description: body.description,
    destination_account_id: body.destination_account_id,
    destination_transaction_id: null,
    idempotency_key: of.key,
    pending_transaction_id: null,
    status: 'pending_approval',
    transaction_id: null,
  }) satisfies Increase.AccountTransfer;
