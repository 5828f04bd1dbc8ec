import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { cardColumns } from '../../db/columns.ts';
import { issuableProducts, type Product } from '../../db/issuable-products.ts';
import { query } from '../../db/sql.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { CardRow } from '../../resources/card.ts';
import {
  type FoundClaim,
  type KeyedAnswer,
  type KeyedRequest,
  replayOf,
} from '../idempotency/answered-claim.ts';
import { type FundingTerms, fundingTermsOf, type TermsColumns } from './funding-terms.ts';

/** What a test-mode operation is decided on. */
export interface TestTerms {
  terms: FundingTerms;
  /** What the account may issue, the current product first (decisions.md, "Products"). */
  products: Product[];
  /** The card that the request is about. */
  card: CardRow;
  /** On that card. */
  cardCents: number;
}

/**
 * Locks the account's usage, where the operation counts something, and the card it is about, then looks under the key and
 * reads what the operation is decided on.
 * @returns the answer where there is one
 * @throws ApiError `card_not_found`, `idempotency_conflict`
 */
export async function lockTestTerms(
  tx: EntityManager,
  ring: KeyRing,
  request: KeyedRequest,
  { counts }: { counts: boolean },
): Promise<TestTerms | KeyedAnswer> {
  const { partnerId, key, cardId } = request;
  const [row] = await query<
    FoundClaim & TermsColumns & CardRow & { card_cents: string; products: Product[] }
  >(tx, TERMS, [partnerId, key, cardId, counts]);
  if (row === undefined) throw new Error(`there is no account ${partnerId}`);
  if (cardId !== null && row.id === null) throw new ApiError('card_not_found');
  const terms = fundingTermsOf(partnerId, 'test', row);
  const { products } = row;
  return replayOf(ring, request, row) ?? { terms, products, card: row, cardCents: Number(row.card_cents) };
}

const TERMS = `
  SELECT f.claim_id, f.fingerprint, f.response_status, f.response_body, f.card_cents, f.fee_plan, f.limits, f.open_cards,
    f.loaded_today_cents, CASE WHEN $3 IS NULL THEN ${issuableProducts('$1')} END AS products, ${cardColumns('(f.card)')}
  FROM lock_test_terms($1, $2, $3, $4) f`;
