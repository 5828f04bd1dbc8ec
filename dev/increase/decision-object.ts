import type { Increase } from 'increase';
import { makeId } from './objects.ts';
import { type CardUse, requested } from './payment-objects.ts';

/** What Increase asks in real time, before it approves. */
export const makeDecision = (
  use: CardUse,
  of: {
    accountId: string;
    cardId: string;
    paymentId: string;
    incremented: string | null;
    createdAt: string;
    timeoutAt: string;
  },
): Increase.RealTimeDecision => ({
  id: makeId('real_time_decision'),
  type: 'real_time_decision',
  category: 'card_authorization_requested',
  status: 'pending',
  created_at: of.createdAt,
  timeout_at: of.timeoutAt,
  card_authentication: null,
  card_authentication_challenge: null,
  card_balance_inquiry: null,
  digital_wallet_authentication: null,
  digital_wallet_token: null,
  card_authorization: {
    ...requested(use),
    account_id: of.accountId,
    approval: null,
    card_id: of.cardId,
    decision: null,
    decline: null,
    healthcare: null,
    partial_approval_capability: 'not_supported',
    request_details:
      of.incremented === null
        ? {
            category: 'initial_authorization',
            initial_authorization: {},
            incremental_authorization: null,
          }
        : {
            category: 'incremental_authorization',
            initial_authorization: null,
            incremental_authorization: {
              card_payment_id: of.paymentId,
              original_card_authorization_id: of.incremented,
            },
          },
    settlement_amount: use.amount,
    settlement_currency: 'USD',
    upcoming_card_payment_id: of.paymentId,
  },
});
