import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import type { Tenant } from '../domain/mode.ts';
import { completeControls, type SpendingControls } from '../domain/spending-controls.ts';
import { writeStatement } from '../platform/db/sql.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { respondWithEvent } from '../requests/outcome.ts';
import { type KeyedResponse, respondOnce, respondWith } from '../requests/respond-once.ts';
import { isAnnounced, lockRequestedCard } from './lock-card.ts';
import { type Metadata, mergeMetadata } from './metadata-rules.ts';
import { type CardRow, presentCard, type UpdateCardRequest } from './resource.ts';
import { changeOutcome } from './row.ts';

/**
 * Changes a card's label, e-mail address, metadata or spending controls (docs/partners/cards.md), in both
 * modes: the card network has none of these. An event tells of it if anything changed. While the card's
 * creation has no response, it may still be refused, and then there never was a card: so that event is
 * written with the response (cards/end-issuance.ts), or never.
 * @throws ApiError `card_not_found`, `idempotency_in_flight`, `idempotency_conflict`, `validation_failed`
 * (too many keys of metadata), and, without an Idempotency-Key, `invalid_state`. With a key, that refusal is
 * a stored response.
 */
export function updateCard(
  context: CommandContext,
  request: KeyedRequest<'update_card'> & { cardId: string },
  changes: UpdateCardRequest,
): Promise<KeyedResponse> {
  return respondOnce(context, request, async (tx) => {
    const command = { tx, ring: context.ring };
    const locked = await lockRequestedCard(command, request);
    if ('replayed' in locked) return locked;
    const { card: before, balance, clock } = locked;
    if (before.status === 'failed') {
      throw new ApiError('invalid_state', {
        message: 'The card could not be issued, so nothing of it can be changed.',
      });
    }
    if (before.cardholder_erased_at !== null) refuseErased(changes);
    const card = changed(before, changes);
    const resource = presentCard(card, balance);
    if (JSON.stringify(resource) === JSON.stringify(presentCard(before, balance))) {
      return respondWith(command, request, 200, resource);
    }
    const announced = await isAnnounced(tx, before);
    await write(tx, {
      partnerId: card.partner_id,
      mode: card.mode,
      cardId: card.id,
      cardName: card.card_name,
      email: card.email,
      metadata: JSON.stringify(card.metadata),
      spendingControls: card.spending_controls === null ? null : JSON.stringify(card.spending_controls),
      updateUnannounced: !announced,
    });
    if (!announced) return respondWith(command, request, 200, resource);
    return respondWithEvent(command, request, changeOutcome('card.updated', card, balance), clock);
  });
}

function changed(card: CardRow, changes: UpdateCardRequest): CardRow {
  const { card_name: cardName, email, metadata, spending_controls: controls } = changes;
  return {
    ...card,
    card_name: cardName === undefined ? card.card_name : cardName,
    email: email === undefined ? card.email : email,
    metadata: metadata === undefined ? card.metadata : mergeMetadata(card.metadata, metadata),
    spending_controls: controls === undefined ? card.spending_controls : completeControls(controls),
  };
}

/**
 * What was erased stays erased, whatever a partner's synchronisation sends afterwards
 * (docs/partners/cards.md).
 * @throws ApiError `invalid_state`
 */
function refuseErased({ email, metadata }: UpdateCardRequest): void {
  const setsMetadata = Object.values(metadata ?? {}).some((value) => value !== null);
  if (typeof email === 'string' || setsMetadata) {
    throw new ApiError('invalid_state', {
      message:
        "The cardholder's data was erased from this card, so email and metadata can no longer be set. card_name can.",
    });
  }
}

interface Written extends Tenant {
  cardId: string;
  cardName: string | null;
  email: string | null;
  metadata: string;
  spendingControls: string | null;
  updateUnannounced: boolean;
}

const write = writeStatement((db, card: Written) =>
  db
    .updateTable('card')
    .set({
      card_name: card.cardName,
      email: card.email,
      metadata: sql<Metadata>`${card.metadata}::jsonb`,
      spending_controls: sql<SpendingControls | null>`${card.spendingControls}::jsonb`,
      update_unannounced: card.updateUnannounced,
    })
    .where('id', '=', card.cardId)
    .where('partner_id', '=', card.partnerId)
    .where('mode', '=', card.mode),
);
