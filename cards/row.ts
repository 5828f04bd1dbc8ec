import type { IssuedCard } from '../domain/card.ts';
import type { EventType } from '../domain/event.ts';
import { CARD_COLUMNS, of } from '../platform/db/columns.ts';
import { type Transactor, writeStatement } from '../platform/db/sql.ts';
import type { Outcome } from '../requests/outcome.ts';
import type { Funding } from './funding-posting.ts';
import { type CardBalance, type CardRow, presentCard } from './resource.ts';

/** The row of a card that the network has issued. */
export const activeCard = (card: CardRow, issued: IssuedCard): CardRow => ({
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
  const balanceCents = isActive ? Number(card.funding_cents) : 0;
  const resource = presentCard(card, { balanceCents, heldCents: 0 });
  return {
    type: isActive ? 'card.issued' : 'card.issue_failed',
    mode: card.mode,
    cardId: card.id,
    data: { card: resource },
    response: { status: 201, resource },
  };
}

/** What became of a change of an issued card. @param card and balance as they are afterwards */
export function changeOutcome(type: EventType, card: CardRow, balance: CardBalance): Outcome {
  const resource = presentCard(card, balance);
  return {
    type,
    mode: card.mode,
    cardId: card.id,
    data: { card: resource },
    response: { status: 200, resource },
  };
}

/** What the ledger moves for an issuance. */
export const issuanceFunding = (card: CardRow): Funding => ({
  operationId: `issue/${card.id}`,
  partnerId: card.partner_id,
  mode: card.mode,
  cardId: card.id,
  from: 'prepaid',
  step: 'load',
  code: 'issue_load',
  amountCents: Number(card.funding_cents),
  fees: card.fees,
});

/** A pending issuance, whose claim and card the transaction holds. */
export interface PendingIssuance {
  claimId: string;
  /** Whether its claim has a response. */
  answered: boolean;
  card: CardRow;
  /** Whether the card was changed and no event has told of it. */
  updateUnannounced: boolean;
}

/** Locks a claim, then the card it creates. @returns null if that card is not pending, or not there */
export async function lockPendingIssuance(tx: Transactor, claimId: string): Promise<PendingIssuance | null> {
  const [locked] = await lockClaimAndCard(tx, { claimId });
  if (locked === undefined || locked.status !== 'funding_pending') return null;
  const { answered, update_unannounced: updateUnannounced, ...card } = locked;
  return { claimId, answered, card, updateUnannounced };
}

const lockClaimAndCard = writeStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim as c')
      .innerJoin('card as k', 'k.id', 'c.resource_id')
      .select([...of('k', CARD_COLUMNS), 'k.update_unannounced'])
      .select((eb) => eb('c.response_status', 'is not', null).$castTo<boolean>().as('answered'))
      .where('c.id', '=', claimId)
      .forNoKeyUpdate(),
  { acrossTenants: 'id' },
);
