import type { CardBalance, CardRow } from '../cards/resource.ts';
import { type AccountClock, accountTime } from '../domain/account-clock.ts';
import type { FeePlan } from '../domain/fees.ts';
import type { PaymentMerchant } from '../domain/payment.ts';
import { transactionFees } from '../domain/transaction.ts';
import type { Posting, Transfer } from '../ledger/posting.ts';
import { newId, readIdTime } from '../platform/crypto/new-id.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import type { PaidMovement } from './money-rules.ts';
import type { Decline } from './pairing-rules.ts';
import { partnerShareCents, type TransactionRow } from './transaction-resource.ts';

export const columnsOf = ({ name, categoryCode, city, country }: PaymentMerchant) => ({
  merchant_name: name,
  merchant_category_code: categoryCode,
  merchant_city: city,
  merchant_country: country,
});

export const merchantOf = (row: AuthorizationRow | TransactionRow): PaymentMerchant => ({
  name: row.merchant_name,
  categoryCode: row.merchant_category_code,
  city: row.merchant_city,
  country: row.merchant_country,
});

/** What the transactions of a booking belong to. */
interface TransactionNames {
  /** The network's id of the payment; null if it is our own. */
  networkPaymentId: string | null;
  authorizationId: string | null;
  /** When it was decided, if that was before an interval of spending ended. */
  decidedAt?: Date | undefined;
}

interface TransactionTerms {
  card: CardRow;
  /** The card's after the booking. */
  balance: CardBalance;
  feePlan: FeePlan;
  clock: AccountClock;
}

/** What all transactions have, with the fee of their type. */
function newRow(
  { card, feePlan, clock }: TransactionTerms,
  type: TransactionRow['type'],
  { amountCents, merchant }: { amountCents: number; merchant: PaymentMerchant },
  decidedAt?: Date,
) {
  const id = newId('txn', decidedAt);
  return {
    id,
    partner_id: card.partner_id,
    mode: card.mode,
    card_id: card.id,
    type,
    amount_cents: String(amountCents),
    fees: transactionFees(feePlan, type, amountCents),
    ...columnsOf(merchant),
    created_at: accountTime(clock, readIdTime(id)).toISOString(),
  };
}

/** A request that was declined. */
export function toDecline(
  terms: TransactionTerms,
  { request, requestId }: Decline,
  { networkPaymentId, authorizationId }: TransactionNames,
): TransactionRow {
  const { decision, told } = request;
  return {
    ...newRow(terms, 'decline', request),
    network_transaction_id: requestId,
    decline_reason: decision?.reason ?? told?.reason ?? 'declined_by_network',
    charged_to: 'card',
    card_balance_after_cents: String(terms.balance.balanceCents),
    authorization_id: authorizationId,
    of_authorization: false,
    from_hold_cents: '0',
    partner_balance_cents: null,
    network_payment_id: networkPaymentId,
    refunded_transaction_id: null,
  };
}

export function toTransaction(
  terms: TransactionTerms,
  movement: PaidMovement,
  { networkPaymentId, authorizationId, decidedAt }: TransactionNames,
  refundedIds: ReadonlyMap<string, string>,
): TransactionRow {
  const { id, amountCents, kind, onPartnerCents, refunds, ofAuthorization } = movement;
  const isShared = onPartnerCents > 0 && onPartnerCents < amountCents;
  return {
    ...newRow(terms, kind === 'refund' ? 'refund' : 'purchase', movement, decidedAt),
    network_transaction_id: id,
    decline_reason: null,
    charged_to: isShared ? 'both' : onPartnerCents > 0 ? 'partner_balance' : 'card',
    card_balance_after_cents: String(movement.cardBalanceAfterCents),
    authorization_id: ofAuthorization ? authorizationId : null,
    of_authorization: ofAuthorization,
    from_hold_cents: String(movement.fromHoldCents),
    partner_balance_cents: isShared ? String(onPartnerCents) : null,
    network_payment_id: networkPaymentId,
    refunded_transaction_id: refunds === null ? null : (refundedIds.get(refunds) ?? null),
  };
}

/**
 * The ledger's posting of a transaction: its amount, between the network and whoever pays or gets it, and its
 * fees. What an authorization's hold pays is in the authorization's posting. Null if no money moves.
 */
export function transactionPosting(row: TransactionRow): Posting | null {
  const transfers: Transfer[] = [];
  if (row.type !== 'decline') transfers.push(...amountTransfers(row));
  for (const { type, amount } of row.fees) {
    transfers.push({
      step: 'fee',
      code: type === 'decline' ? 'fee_decline' : 'fee_transaction',
      phase: 'single',
      debit: 'prepaid',
      credit: 'fee_revenue',
      amountCents: amount,
    });
  }
  if (transfers.length === 0) return null;
  return { operationId: `settle/${row.id}`, partnerId: row.partner_id, mode: row.mode, transfers };
}

function amountTransfers(row: TransactionRow): Transfer[] {
  const { type, charged_to: chargedTo, card_id: cardId } = row;
  const partnerCents = partnerShareCents(row);
  const cardCents = Number(row.amount_cents) - partnerCents - Number(row.from_hold_cents);
  const network = 'network' as const;
  const onCard =
    type === 'refund'
      ? ({ code: 'refund', debit: network, credit: { cardId } } as const)
      : ({ code: 'purchase', debit: { cardId }, credit: network } as const);
  const onBalance =
    type === 'refund'
      ? ({ code: 'late_refund', debit: network, credit: 'prepaid' } as const)
      : ({ code: 'late_debit', debit: 'prepaid', credit: network } as const);
  const cardTransfer: Transfer = { ...onCard, step: 'amount', phase: 'single', amountCents: cardCents };
  const step = chargedTo === 'both' ? 'late' : 'amount';
  const balanceTransfer: Transfer = { ...onBalance, step, phase: 'single', amountCents: partnerCents };
  return [cardTransfer, balanceTransfer].filter(({ amountCents }) => amountCents > 0);
}
