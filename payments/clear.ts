import { accountTime } from '../domain/account-clock.ts';
import { clearedState, clearingShares } from '../domain/authorization.ts';
import { type ChargedTo, transactionFees } from '../domain/transaction.ts';
import { newId, readIdTime } from '../platform/crypto/new-id.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import { settlementPosting } from './decide-settlements.ts';
import { holdPosting, releaseFromBlocked, toState, withState } from './holds.ts';
import type { AuthorizationTerms } from './terms.ts';
import type { Merchant, TransactionRow } from './transaction-resource.ts';
import type { AuthorizationChange } from './write-change.ts';

// A merchant takes its money. The network has already moved it, so a clearing is never declined: what its
// hold and the card can't pay, the prepaid balance pays.

/** A clearing as the network reports it, or a partner simulates it. */
interface Clearing {
  amountCents: number;
  /** Whether it is the last one of its authorization, so that nothing stays held. */
  isFinal: boolean;
  merchant: Merchant;
  /** The network's id of the clearing. */
  messageId: string;
  /** The network's id of what it is part of; null if it has none. */
  networkPaymentId?: string | null;
}

/**
 * Books a clearing (docs/partners/authorizations.md).
 * @param before the authorization; null for a clearing without one
 * @throws ApiError `validation_failed` if the fee would exceed the largest safe integer
 */
export function bookClearing(
  terms: AuthorizationTerms,
  before: AuthorizationRow | null,
  clearing: Clearing,
): AuthorizationChange & { transaction: TransactionRow } {
  const { card, balance, clock, feePlan, prepaidCents } = terms;
  const { amountCents, merchant } = clearing;
  const heldCents = Number(before?.held_cents ?? 0);
  const availableCents = balance.balanceCents - balance.heldCents;
  const shares = clearingShares(amountCents, { heldCents, availableCents });
  const authorization = before && withState(before, clearedState(toState(before), clearing));

  const paid = {
    balanceCents: balance.balanceCents - shares.fromHoldCents - shares.fromAvailableCents,
    heldCents: balance.heldCents - heldCents + Number(authorization?.held_cents ?? 0),
  };
  const release = before && releaseFromBlocked(card, before, paid, prepaidCents - shares.fromPartnerCents);
  const after = { ...paid, balanceCents: paid.balanceCents - (release?.releasedCents ?? 0) };

  const id = newId('txn');
  const chargedTo = decideChargedTo(amountCents, shares.fromPartnerCents);
  const transaction: TransactionRow = {
    id,
    partner_id: card.partner_id,
    mode: card.mode,
    card_id: card.id,
    network_transaction_id: clearing.messageId,
    requested_type: 'purchase',
    forced: true,
    type: 'purchase',
    amount_cents: String(amountCents),
    fees: transactionFees(feePlan, 'purchase', amountCents),
    merchant_name: merchant.name,
    merchant_category_code: merchant.category_code,
    merchant_city: merchant.city,
    merchant_country: merchant.country,
    decline_reason: null,
    charged_to: chargedTo,
    card_balance_after_cents: String(after.balanceCents),
    created_at: accountTime(clock, readIdTime(id)).toISOString(),
    authorization_id: before?.id ?? null,
    from_hold_cents: String(shares.fromHoldCents),
    partner_balance_cents: chargedTo === 'both' ? String(shares.fromPartnerCents) : null,
    network_payment_id: clearing.networkPaymentId ?? null,
    refunded_transaction_id: null,
  };
  const hold = before && authorization && holdPosting(before, authorization, shares.fromHoldCents);
  const postings = [hold, settlementPosting(transaction), release?.posting];
  return {
    card,
    balance: after,
    clock,
    authorization,
    transaction,
    postings: postings.filter((posting) => posting != null),
    events:
      authorization === null
        ? ['card.transaction.created']
        : ['card.authorization.updated', 'card.transaction.created'],
  };
}

function decideChargedTo(amountCents: number, fromPartnerCents: number): ChargedTo {
  if (fromPartnerCents === 0) return 'card';
  return fromPartnerCents === amountCents ? 'partner_balance' : 'both';
}
