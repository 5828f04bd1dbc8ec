import { sql } from 'kysely';
import { countedDay } from '../accounts/clock.ts';
import { checkLimits } from '../accounts/limits-rules.ts';
import { accountTime } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import { cardholderName, chooseProduct, type IssuedCard } from '../domain/card.ts';
import type { IssuanceDecision } from '../domain/decision.ts';
import { quoteFunding } from '../domain/fees.ts';
import { completeControls } from '../domain/spending-controls.ts';
import type { IssueCardRequest } from '../issuers/card-network.ts';
import { statementWithPosting } from '../ledger/apply-posting.ts';
import { refuseTooLarge } from '../ledger/refuse-too-large.ts';
import { readIdTime } from '../platform/crypto/new-id.ts';
import { CARD_COLUMNS, of, ownColumns } from '../platform/db/columns.ts';
import { cte, readStatement, withCtes, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type KeyedRequest, lockUsageAndClaim } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { endRequest, type KeyedOutcomeValues, outcomeResponse, requestOutcome } from '../requests/outcome.ts';
import { type KeyedResponse, requireStored, respondOnce } from '../requests/respond-once.ts';
import { openRequest, storeError } from '../requests/response.ts';
import { type BegunFunding, fundingPosting, type InsertedFunding, requireFunds } from './funding-posting.ts';
import { type IssuableProduct, issuableIn, issuableProducts } from './issuable-products.ts';
import { type CardRow, CreateCardRequest } from './resource.ts';
import { activeCard, issuanceFunding, issuanceOutcome, lockPendingIssuance } from './row.ts';
import { type ClaimedTermsColumns, type FundingTerms, fundingTerms, lockTestTerms } from './terms.ts';
import { countLoad, type Load } from './usage.ts';

// An issuance creates a card and loads its first money. In live mode, the money is held while the card
// network decides, and end-issuance.ts has what follows. In test mode, all of it is one transaction.

/** The context of funding a card in live mode. */
export interface FundingContext extends CommandContext {
  /** Whether live mode has a card network. Without one, it can fund nothing. */
  liveNetworkConfigured: boolean;
}

/**
 * What a pending card's row keeps of the request, so that a repeated one is the same whatever has changed.
 */
interface KeptIssuance {
  /** The product's when the network was first asked. */
  bin: string;
  /** The network's own reference of the product then. */
  issuerProduct: string | null;
  /** Whether a name was sent. The name is the row's, which can't change before the network has decided. */
  named: boolean;
}

/**
 * Begins an issuance in live mode: the pending card and its hold. A refusal becomes the claim's response and
 * leaves nothing else behind. If it runs again for the same claim, it changes nothing and returns the same.
 */
export async function beginIssuance(
  context: FundingContext,
  claimId: string,
): Promise<BegunFunding<IssueCardRequest>> {
  const { orm, ring, liveNetworkConfigured } = context;
  try {
    return await transaction(orm, async (tx) => {
      const [claimed] = await lockClaimedTerms(tx, { claimId });
      if (claimed === undefined) return { state: 'answered', response: null };
      if (claimed.is_pending) return { state: 'held', asked: null };
      if (claimed.answered) return { state: 'answered', response: null };
      const { card, product } = draftCard(claimed.resource_id, {
        ...fundingTerms(claimed.partner_id, claimed.mode, claimed),
        request: CreateCardRequest.parse(openRequest(ring, claimId, claimed.request)),
        products: issuableIn(claimed.mode, claimed.products, liveNetworkConfigured),
      });
      const { bin, issuerProduct } = product;
      const kept: KeptIssuance = { bin, issuerProduct, named: cardholderName(card) !== null };
      const values = {
        partnerId: card.partner_id,
        mode: card.mode,
        row: JSON.stringify(card),
        pendingClaimId: claimId,
        asked: JSON.stringify(kept),
      };
      const funding = issuanceFunding(card);
      const held = await holdCard(tx, fundingPosting(funding, 'pending'), values).catch(refuseTooLarge);
      if (!held.wrote.made) throw new ApiError('external_ref_taken');
      await requireFunds(tx, funding, held.moved);
      return { state: 'held', asked: askedFor(card, kept) };
    });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return transaction(orm, async (tx) => {
      if ((await lockUsageAndClaim(tx, claimId)) === null) return { state: 'answered', response: null };
      // Another run of the same claim may have got further in the meantime, and its result stands.
      if ((await lockPendingIssuance(tx, claimId)) !== null) return { state: 'held', asked: null };
      return { state: 'answered', response: await storeError({ tx, ring }, claimId, error) };
    });
  }
}

const lockClaimedTerms = writeStatement(
  (_, { claimId }: { claimId: string }) => sql<ClaimedTermsColumns & { products: IssuableProduct[] }>`
    SELECT f.*, ${issuableProducts(sql.ref('f.partner_id'))} AS products
      FROM lock_funding_terms(${claimId}) f`,
);

/** The state that an issuance is decided on. */
interface IssuanceTerms extends FundingTerms {
  request: CreateCardRequest;
  /** The products the account can issue, the current one first (docs/partners/products.md). */
  products: IssuableProduct[];
}

/**
 * The pending card of an issuance on these terms. Everything that can be refused without the ledger is
 * refused here, so limits come before the balance (docs/partners/money-fees-and-limits.md).
 * @throws ApiError `no_product_configured`, `product_not_allowed`, `limit_exceeded`, `validation_failed`
 * (amount and fees past the largest integer).
 */
function draftCard(cardId: string, terms: IssuanceTerms): { card: CardRow; product: IssuableProduct } {
  const { request } = terms;
  const product = chooseProduct(terms.products, request.product_code);
  const { fees } = quoteFunding(terms.feePlan, 'card_issue', request.amount);
  checkLimits(terms.limits, terms.usage, { amountCents: request.amount, newCards: 1 });
  const card: CardRow = {
    id: cardId,
    partner_id: terms.partnerId,
    mode: terms.mode,
    status: 'funding_pending',
    external_ref: request.external_ref,
    card_name: request.card_name ?? null,
    cardholder_first_name: request.cardholder_first_name ?? null,
    cardholder_last_name: request.cardholder_last_name ?? null,
    email: request.email ?? null,
    metadata: request.metadata ?? {},
    spending_controls: completeControls(request.spending_controls ?? null),
    product_code: product.code,
    network: product.scheme,
    network_card_id: null,
    last4: null,
    exp_month: null,
    exp_year: null,
    failure_code: null,
    funding_cents: String(request.amount),
    fees,
    overdue_since: null,
    created_at: accountTime(terms.clock, readIdTime(cardId)).toISOString(),
  };
  return { card, product };
}

function askedFor(card: CardRow, { bin, issuerProduct, named }: KeptIssuance): IssueCardRequest {
  return {
    token: card.id,
    productCode: card.product_code,
    bin,
    issuerProduct,
    amountCents: Number(card.funding_cents),
    cardholderName: named ? cardholderName(card) : null,
  };
}

const OWN_COLUMNS = ownColumns(CARD_COLUMNS);

/** Inserts a card and returns what is counted of it; nothing if its external_ref is taken. */
const insertCard = (card: InsertedFunding) => sql<Load>`
  INSERT INTO card (partner_id, mode, ${OWN_COLUMNS}, claim_id, asked, counted_on)
  SELECT ${card.partnerId}, ${card.mode}, ${OWN_COLUMNS}, ${card.pendingClaimId}, ${card.asked}::jsonb,
    ${countedDay(card.partnerId, card.mode)}
  FROM json_populate_record(NULL::card, ${card.row})
  ON CONFLICT (partner_id, mode, external_ref) WHERE status <> 'failed' DO NOTHING
  RETURNING partner_id, mode, funding_cents AS cents, counted_on`;

const holdCard = statementWithPosting((_, card: InsertedFunding, ledger) => {
  const made = cte('made', insertCard(card));
  return sql<{ made: boolean }>`
    ${withCtes([made, countLoad(made, 1)])}
    SELECT ${ledger.answer}, EXISTS (SELECT FROM ${made.rows}) AS made FROM ${ledger.call}`;
});

/**
 * What a pending issuance asks the network for, and what an operator has decided meanwhile; null if it is not
 * pending.
 */
export async function readPendingIssuance(
  { orm }: CommandContext,
  claimId: string,
): Promise<{ asked: IssueCardRequest; decision: IssuanceDecision | null } | null> {
  const [card] = await pendingCard(orm.em.fork(), { claimId });
  if (card === undefined) return null;
  if (card.asked === null)
    throw new Error(`card ${card.id} is pending, but not what its network was asked for`);
  return { asked: askedFor(card, card.asked), decision: card.binding };
}

const pendingCard = readStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('card as c')
      .select(of('c', CARD_COLUMNS))
      .select([
        'c.asked',
        sql<IssuanceDecision | null>`CASE WHEN NOT c.decision ? 'refused' THEN c.decision END`.as('binding'),
      ])
      .where('c.claim_id', '=', claimId)
      .where('c.status', '=', 'funding_pending'),
  { acrossTenants: 'id' },
);

export interface TestIssuanceContext extends CommandContext {
  /** Test mode's network: arithmetic on the card's id, fast enough to run inside a transaction. */
  issueTestCard(cardId: string): Promise<IssuedCard>;
}

/**
 * Issues a test card in one transaction: test mode's network always says yes, so there is nothing to wait
 * for.
 * @throws ApiError `idempotency_conflict`, `validation_failed` (amount and fees past the largest integer).
 * Other refusals are returned as the stored response.
 */
export function issueInTestMode(
  context: TestIssuanceContext,
  request: KeyedRequest<'create_card'>,
  asked: CreateCardRequest,
): Promise<KeyedResponse> {
  const { ring, issueTestCard } = context;
  const { resourceId: cardId } = request;
  return respondOnce(context, request, async (tx) => {
    const locked = await lockTestTerms({ tx, ring }, request, { counts: true });
    if ('replayed' in locked) return locked;
    const { terms, products } = locked;
    const draft = draftCard(cardId, { ...terms, request: asked, products });
    const card = activeCard(draft.card, await issueTestCard(cardId));
    const outcome = issuanceOutcome(card);
    const ended = requestOutcome(ring, request, outcome, terms.clock);
    const values = { ...ended, row: JSON.stringify(card), pendingClaimId: null, asked: null };
    const funding = issuanceFunding(card);
    const funded = await fundCard(tx, fundingPosting(funding, 'single'), values).catch(refuseTooLarge);
    if (!funded.wrote.made) throw new ApiError('external_ref_taken');
    await requireFunds(tx, funding, funded.moved);
    requireStored(funded.wrote.is_stored);
    return { replayed: false, response: outcomeResponse(outcome) };
  });
}

const fundCard = statementWithPosting((_, card: InsertedFunding & KeyedOutcomeValues, ledger) => {
  const made = cte('made', insertCard(card));
  const { ctes, isStored } = endRequest(made, card);
  return sql<{ made: boolean; is_stored: boolean }>`
    ${withCtes([made, countLoad(made, 1), ...ctes])}
    SELECT ${ledger.answer}, EXISTS (SELECT FROM ${made.rows}) AS made, ${isStored} AS is_stored
      FROM ${ledger.call}`;
});
