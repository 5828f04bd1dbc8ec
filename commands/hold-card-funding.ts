import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';
import { ApiError } from '../domain/api-error.ts';
import type { CardRow } from '../domain/card-resource.ts';
import { chooseProduct } from '../domain/choose-product.ts';
import { quoteFunding } from '../domain/fees.ts';
import { checkLimits } from '../domain/limits.ts';
import { applyOperation } from '../ledger/apply-operation.ts';
import { issuanceOperation } from './issuance-operation.ts';
import type { IssuanceTerms } from './issuance-terms.ts';

/**
 * Makes the pending card and holds its amount and fees, in the caller's transaction and under the lock its terms were
 * read with. A refusal leaves nothing behind. decisions.md fixes the order: limits go before the balance.
 * @throws ApiError `no_product_configured`, `product_not_allowed`, `limit_exceeded`, `external_ref_taken`,
 * `insufficient_funds`, `validation_failed` (amount and fees past the largest integer).
 */
export async function holdCardFunding(
  tx: EntityManager,
  cardId: string,
  terms: IssuanceTerms,
): Promise<CardRow> {
  const { request } = terms;
  const product = chooseProduct(terms.products, request.product_code);
  const { fees } = quoteFunding(terms.feePlan, 'card_issue', request.amount);
  checkLimits(terms.limits, terms.usage, { amountCents: request.amount, newCards: 1 });

  const [card] = await query<CardRow>(tx, INSERT_CARD, [
    cardId,
    terms.partnerId,
    terms.mode,
    request.external_ref,
    request.card_name ?? null,
    request.cardholder_first_name ?? null,
    request.cardholder_last_name ?? null,
    request.email ?? null,
    product.code,
    product.network,
    request.amount,
    JSON.stringify(fees),
  ]);
  if (card === undefined) throw new ApiError('external_ref_taken');

  const held = await applyOperation(tx, issuanceOperation(card, 'pending'));
  if (held.outcome === 'insufficient_funds') throw new ApiError('insufficient_funds');
  return card;
}

const INSERT_CARD = `
  WITH made AS (
    INSERT INTO card (id, partner_id, mode, status, external_ref, card_name, cardholder_first_name,
      cardholder_last_name, email, product_code, network, funding_cents, fees, created_at)
    VALUES ($1, $2, $3, 'funding_pending', $4, $5, $6, $7, $8, $9, $10, $11, $12, now())
    ON CONFLICT (partner_id, mode, external_ref) WHERE status <> 'failed' DO NOTHING
    RETURNING *
  ), counted AS (
    UPDATE account_usage u SET open_cards = open_cards + 1, loaded_on = today,
      loaded_cents = CASE WHEN loaded_on = today THEN loaded_cents ELSE 0 END + made.funding_cents
    FROM made, (SELECT (now() AT TIME ZONE 'UTC')::date AS today) clock
    WHERE u.partner_id = made.partner_id AND u.mode = made.mode
  )
  SELECT * FROM made`;
