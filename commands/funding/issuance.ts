import { sql } from 'kysely';
import { timeOf } from '../../crypto/new-id.ts';
import { CARD_COLUMNS, of } from '../../db/columns.ts';
import { readStatement } from '../../db/sql.ts';
import { type CardFailureCode, cardholderName, chooseProduct, type IssuedCard } from '../../domain/card.ts';
import type { IssuanceDecision } from '../../domain/decision.ts';
import { type Fee, quoteFunding } from '../../domain/fees.ts';
import { checkLimits } from '../../domain/limits.ts';
import { type CardRow, CreateCardRequest, presentCard } from '../../resources/card.ts';
import { lockCard } from '../card-status/lock-card.ts';
import type { CommandContext } from '../command-context.ts';
import type { Outcome } from '../idempotency/outcome.ts';
import { issuableIn, issuableProducts, type Product } from '../products/issuable-products.ts';
import type { FundingKind } from './funding.ts';
import { type NetworkEvidence, networkCardOf } from './network-card.ts';
import { type ClaimedTerms, type FundingTerms, termsReader } from './terms.ts';
import { type FundingTable, fundingWriter } from './write-funding.ts';

/** The request to the network. Its token is the card's id. */
export interface AskedIssuance {
  token: string;
  productCode: string;
  bin: string;
  amountCents: number;
  cardholderName: string | null;
}

/** What a pending card's row keeps of the request, so that a repeated one is the same whatever has changed. */
interface KeptIssuance {
  /** The product's when the network was first asked. */
  bin: string;
  /** Whether a name was sent. The name is the row's, which can't change before the network has decided. */
  named: boolean;
}

/** What a pending issuance asks the network for, and what an operator has decided meanwhile; null if it is not pending. */
export async function readPendingIssuance(
  { orm }: CommandContext,
  claimId: string,
): Promise<{ asked: AskedIssuance; decision: IssuanceDecision | null } | null> {
  const [card] = await pendingCard(orm.em.fork(), { claimId });
  return card === undefined ? null : { asked: askedFor(card, keptOf(card)), decision: card.binding };
}

/** A process of the last release kept nothing: then the product's BIN is the best guess. */
const keptOf = (card: CardRow & { asked: KeptIssuance | null; bin: string }): KeptIssuance =>
  card.asked ?? { bin: card.bin, named: cardholderName(card) !== null };

const pendingCard = readStatement((db, { claimId }: { claimId: string }) =>
  db
    .selectFrom('card as c')
    .innerJoin('product as p', 'p.code', 'c.product_code')
    .select(of('c', CARD_COLUMNS))
    .select([
      'c.asked',
      'p.bin',
      sql<IssuanceDecision | null>`CASE WHEN NOT c.decision ? 'refused' THEN c.decision END`.as('binding'),
    ])
    .where('c.claim_id', '=', claimId)
    .where('c.status', '=', 'funding_pending'),
);

function askedFor(card: CardRow, { bin, named }: KeptIssuance): AskedIssuance {
  return {
    token: card.id,
    productCode: card.product_code,
    bin,
    amountCents: Number(card.funding_cents),
    cardholderName: named ? cardholderName(card) : null,
  };
}

/** The state that an issuance is decided on. */
interface IssuanceTerms extends FundingTerms {
  request: CreateCardRequest;
  /** The products the account can issue, the current one first (decisions.md, "Products"). */
  products: Product[];
}

/**
 * The pending card of an issuance on these terms. Everything that can be refused without the ledger is refused here, so
 * limits come before the balance (decisions.md, "422 limit_exceeded").
 * @throws ApiError `no_product_configured`, `product_not_allowed`, `limit_exceeded`, `validation_failed` (amount and fees
 * past the largest integer).
 */
export function draftCard(
  cardId: string,
  terms: IssuanceTerms,
): { row: CardRow; asked: AskedIssuance; kept: KeptIssuance } {
  const { request } = terms;
  const product = chooseProduct(terms.products, request.product_code);
  const { fees } = quoteFunding(terms.feePlan, 'card_issue', request.amount);
  checkLimits(terms.limits, terms.usage, { amountCents: request.amount, newCards: 1 });
  const row: CardRow = {
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
  const kept = { bin: product.bin, named: cardholderName(row) !== null };
  return { row, asked: askedFor(row, kept), kept };
}

/** The row of a card that the network has issued. */
export const issuedCard = (card: CardRow, issued: IssuedCard): CardRow => ({
  ...card,
  status: 'active',
  network_card_id: issued.networkCardId,
  last4: issued.last4,
  exp_month: issued.expMonth,
  exp_year: issued.expYear,
});

/** How an issuance ended. @param card the row as it will be written */
export function issuanceOutcome(card: CardRow): Outcome {
  const isActive = card.status === 'active';
  const resource = presentCard(card, isActive ? Number(card.funding_cents) : 0);
  return {
    type: isActive ? 'card.issued' : 'card.issue_failed',
    mode: card.mode,
    cardId: card.id,
    data: { card: resource },
    response: { status: 201, resource },
  };
}

const TABLE: FundingTable<CardRow> = {
  newCards: 1,
  funding: (card) => ({
    operationId: `issue/${card.id}`,
    partnerId: card.partner_id,
    mode: card.mode,
    cardId: card.id,
    load: { step: 'load', code: 'issue_load' },
    amountCents: Number(card.funding_cents),
    fees: card.fees,
  }),
  insert: (db, card, claimId) =>
    db
      .insertInto('card')
      .values({
        id: card.id,
        partner_id: card.partner_id,
        mode: card.mode,
        claim_id: claimId,
        status: card.status,
        external_ref: card.external_ref,
        card_name: card.card_name,
        cardholder_first_name: card.cardholder_first_name,
        cardholder_last_name: card.cardholder_last_name,
        email: card.email,
        product_code: card.product_code,
        network: card.network,
        network_card_id: card.network_card_id,
        last4: card.last4,
        exp_month: card.exp_month,
        exp_year: card.exp_year,
        funding_cents: card.funding_cents,
        fees: sql<Fee[]>`${card.fees}::jsonb`,
        asked: sql<KeptIssuance | null>`${card.asked}::jsonb`,
        created_at: card.created_at,
      })
      .onConflict((conflict) =>
        conflict
          .columns(['partner_id', 'mode', 'external_ref'])
          .where('status', '<>', sql.lit('failed'))
          .doNothing(),
      )
      .returning(['partner_id', 'mode', 'funding_cents as loaded_cents', 'counted_on as today']),
  end: (db, card) =>
    db
      .updateTable('card')
      .set({
        status: card.status,
        network_card_id: card.network_card_id,
        last4: card.last4,
        exp_month: card.exp_month,
        exp_year: card.exp_year,
        failure_code: card.failure_code,
        claim_id: null,
        overdue_since: null,
        not_recorded: null,
      })
      .where('id', '=', card.id)
      .where('status', '=', 'funding_pending')
      .returning(['partner_id', 'mode']),
};

const lockTerms = termsReader(
  CreateCardRequest,
  sql<{ products: Product[] }>`${issuableProducts(sql.ref('f.partner_id'))} AS products`,
);

/** An issuance: it creates a card and loads its first money. */
export const ISSUANCE: FundingKind<
  CardRow,
  AskedIssuance,
  IssuedCard,
  CardFailureCode,
  NetworkEvidence,
  ClaimedTerms<CreateCardRequest, { products: Product[] }>
> = {
  ...TABLE,
  table: 'card',
  pendingStatus: 'funding_pending',
  writer: fundingWriter(TABLE),
  lockTerms,
  async draft(_, { liveNetworkConfigured }, { more, ...terms }) {
    const products = issuableIn(terms.mode, more.products, liveNetworkConfigured);
    return draftCard(terms.resourceId, { ...terms, products });
  },
  async lock(tx, cardId, held) {
    const card = held ?? (await lockCard(tx, cardId));
    return card?.id === cardId ? { row: card, cardCents: 0 } : null;
  },
  loaded: ({ row }, issued) => issuedCard(row, issued),
  failed: ({ row }, failure) => ({ ...row, status: 'failed', failure_code: failure }),
  loadedByHand: (tx, card, decision, evidence) =>
    networkCardOf(tx, card.id, evidence, decision.networkCardId),
  outcome: issuanceOutcome,
  present: (card) => presentCard(card, 0),
};
