import { timeOf } from '../../crypto/new-id.ts';
import { chooseProduct } from '../../domain/card.ts';
import { quoteFunding } from '../../domain/fees.ts';
import { checkLimits } from '../../domain/limits.ts';
import type { CardRow } from '../../resources/card.ts';
import type { IssuanceTerms } from './issuance-terms.ts';

/**
 * The pending card that an issuance on these terms begins with; all that can be refused without the ledger is refused
 * here, limits before the balance (decisions.md, "422 limit_exceeded").
 * @throws ApiError `no_product_configured`, `product_not_allowed`, `limit_exceeded`, `validation_failed` (amount and fees
 * past the largest integer).
 */
export function draftCard(cardId: string, terms: IssuanceTerms): CardRow & { status: 'funding_pending' } {
  const { request } = terms;
  const product = chooseProduct(terms.products, request.product_code);
  const { fees } = quoteFunding(terms.feePlan, 'card_issue', request.amount);
  checkLimits(terms.limits, terms.usage, { amountCents: request.amount, newCards: 1 });
  return {
    id: cardId,
    partner_id: terms.partnerId,
    mode: terms.mode,
    status: 'funding_pending',
    external_ref: request.external_ref,
    card_name: request.card_name ?? null,
    cardholder_first_name: request.cardholder_first_name ?? null,
    cardholder_last_name: request.cardholder_last_name ?? null,
    email: request.email ?? null,
    product_code: product.code,
    network: product.network,
    network_card_id: null,
    last4: null,
    exp_month: null,
    exp_year: null,
    failure_code: null,
    funding_cents: String(request.amount),
    fees,
    overdue_since: null,
    created_at: timeOf(cardId).toISOString(),
  };
}
