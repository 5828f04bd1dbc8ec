import { sql } from 'kysely';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { CARD_COLUMNS, of } from '../../db/columns.ts';
import { type Transactor, writeStatement } from '../../db/sql.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { IssuedCard } from '../../domain/card.ts';
import type { CardRow, CreateCardRequest } from '../../resources/card.ts';
import type { TopUpRequest } from '../../resources/topup.ts';
import type { CommandContext } from '../command-context.ts';
import { answerOnce, type KeyedAnswer, replayOf } from '../idempotency/answer-once.ts';
import type { FoundClaim, KeyedRequest } from '../idempotency/claim.ts';
import { responseOf } from '../idempotency/outcome.ts';
import { issuableProducts, type Product } from '../products/issuable-products.ts';
import { draftCard, ISSUANCE, issuanceOutcome, issuedCard } from './issuance.ts';
import { type FundingTerms, fundingTermsOf, type TermsColumns } from './terms.ts';
import { draftTopUp, loadedTopUp, TOPUP, topUpOutcome } from './topup.ts';

// Test mode's network is our own function, which always says yes, so there is nothing to wait for: each of these is one
// transaction of two statements, one that locks and reads, and one that writes.

export interface TestIssuanceContext extends CommandContext {
  /** Test mode's network: arithmetic on the card's id, fast enough to run inside a transaction. */
  issueTestCard(cardId: string): Promise<IssuedCard>;
}

/**
 * Issues a test card.
 * @throws ApiError `idempotency_conflict`, `validation_failed` (amount and fees past the largest integer). Other
 * refusals are returned as the stored response.
 */
export function issueInTestMode(
  context: TestIssuanceContext,
  request: KeyedRequest<'create_card'>,
  asked: CreateCardRequest,
): Promise<KeyedAnswer> {
  const { ring } = context;
  const { resourceId: cardId } = request;
  return answerOnce(context, request, async (tx) => {
    const locked = await lockTestTerms(tx, ring, request, { counts: true });
    if ('replayed' in locked) return locked;
    const { row } = draftCard(cardId, { ...locked.terms, request: asked, products: locked.products });
    const card = issuedCard(row, await context.issueTestCard(cardId));
    const outcome = issuanceOutcome(card);
    await ISSUANCE.writer.fund(tx, ring, request, card, outcome);
    return { replayed: false, response: responseOf(outcome) };
  });
}

/**
 * Tops a test card up.
 * @throws ApiError `card_not_found`, `idempotency_conflict`, `validation_failed` (a sum past the largest integer).
 * Other refusals are returned as the stored response.
 */
export function topUpInTestMode(
  context: CommandContext,
  request: KeyedRequest<'top_up_card'>,
  asked: TopUpRequest,
): Promise<KeyedAnswer> {
  const { ring } = context;
  return answerOnce(context, request, async (tx) => {
    const locked = await lockTestTerms(tx, ring, request, { counts: true });
    if ('replayed' in locked) return locked;
    const { card, cardCents } = locked;
    const terms = { ...locked.terms, request: asked, cardCents, arrivingCents: 0n };
    const topUp = loadedTopUp(draftTopUp(request.resourceId, terms, card), cardCents);
    const outcome = topUpOutcome(topUp, card);
    await TOPUP.writer.fund(tx, ring, request, topUp, outcome);
    return { replayed: false, response: responseOf(outcome) };
  });
}

/** What a test-mode operation is decided on. */
interface TestTerms {
  terms: FundingTerms;
  /** What the account may issue, the current product first (decisions.md, "Products"). */
  products: Product[];
  /** The card that the request is about. */
  card: CardRow;
  /** The balance of that card. */
  cardCents: number;
}

/**
 * Locks the account's usage, if the operation counts something, and the card it is about, then looks the key up and
 * reads what the operation is decided on.
 * @returns the stored response if the key has one
 * @throws ApiError `card_not_found`, `idempotency_conflict`
 */
export async function lockTestTerms(
  tx: Transactor,
  ring: KeyRing,
  request: KeyedRequest,
  { counts }: { counts: boolean },
): Promise<TestTerms | KeyedAnswer> {
  const { partnerId, key, cardId } = request;
  const [row] = await testTerms(tx, { partnerId, key, cardId, counts });
  if (row === undefined) throw new Error(`there is no account ${partnerId}`);
  if (cardId !== null && row.id === null) throw new ApiError('card_not_found');
  const terms = fundingTermsOf(partnerId, 'test', row);
  const { products } = row;
  return replayOf(ring, request, row) ?? { terms, products, card: row, cardCents: Number(row.card_cents) };
}

const testTerms = writeStatement(
  (_, values: { partnerId: string; key: string | null; cardId: string | null; counts: boolean }) => sql<
    FoundClaim & TermsColumns & CardRow & { card_cents: string; products: Product[] }
  >`
    SELECT f.claim_id, f.fingerprint, f.response_status, f.response_body, f.card_cents, f.fee_plan, f.limits,
      f.open_cards, f.loaded_today_cents, ${sql.raw(of('(f.card)', CARD_COLUMNS).join(', '))},
      CASE WHEN ${values.cardId}::text IS NULL THEN ${issuableProducts(sql.ref('a.partner_id'))} END AS products
    FROM (SELECT ${values.partnerId}::text AS partner_id) a CROSS JOIN LATERAL
      lock_test_terms(a.partner_id, ${values.key}, ${values.cardId}, ${values.counts}) f`,
);
