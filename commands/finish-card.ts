import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../db/key-ring.ts';
import { newId } from '../db/new-id.ts';
import { query } from '../db/sql.ts';
import type { CardRow } from '../domain/card-resource.ts';
import { presentCard } from '../domain/card-resource.ts';
import type { EventType } from '../domain/event-type.ts';
import { sealBody } from './idempotency-response.ts';

/**
 * Ends an issuance in one statement, in the caller's transaction: the card's row, its event, and the answer of the
 * claim if nothing was answered yet.
 * @param card the row as it is to be; its status says how the issuance ended.
 */
export async function finishCard(
  tx: EntityManager,
  ring: KeyRing,
  claimId: string,
  card: CardRow & { status: 'active' | 'failed' },
): Promise<void> {
  const resource = presentCard(card, card.status === 'active' ? Number(card.funding_cents) : 0);
  const eventId = newId('evt');
  const created = new Date().toISOString();
  const type: EventType = card.status === 'active' ? 'card.issued' : 'card.issue_failed';
  const event = { id: eventId, type, created, mode: card.mode, data: { card: resource } };
  await query(tx, FINISH, [
    card.id,
    card.status,
    card.network_card_id,
    card.last4,
    card.exp_month,
    card.exp_year,
    card.failure_code,
    eventId,
    type,
    JSON.stringify(event),
    created,
    claimId,
    sealBody(ring, claimId, JSON.stringify(resource)),
  ]);
}

const FINISH = `
  WITH finished AS (
    UPDATE card SET status = $2, network_card_id = $3, last4 = $4, exp_month = $5, exp_year = $6, failure_code = $7,
      overdue_since = NULL
    WHERE id = $1 AND status = 'funding_pending'
    RETURNING id, partner_id, mode
  ), told AS (
    INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
    SELECT $8, partner_id, mode, $9, id, $10, $11::timestamptz FROM finished
  )
  UPDATE idempotency_claim SET response_status = 201, response_body = $13
  WHERE id = $12 AND response_status IS NULL AND EXISTS (SELECT FROM finished)`;
