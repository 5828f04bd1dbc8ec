import type { KeyRing } from '../db/key-ring.ts';
import { newId } from '../db/new-id.ts';
import { type CardRow, presentCard } from '../domain/card-resource.ts';
import type { EventType } from '../domain/event-type.ts';
import { sealBody } from './idempotency-response.ts';

/** What the end of an issuance says to the partner: an event, and the claim's answer if nothing was answered yet. */
export interface Announcement {
  /** CTEs that write it for the card in the CTE `done`, which has id, partner_id and mode. */
  sql: string;
  values: unknown[];
}

/**
 * @param card the row as it is from now on
 * @param firstParameter the number of the first parameter that is free
 */
export function announcementOf(
  ring: KeyRing,
  claimId: string,
  card: CardRow & { status: 'active' | 'failed' },
  firstParameter: number,
): Announcement {
  const resource = presentCard(card, card.status === 'active' ? Number(card.funding_cents) : 0);
  const id = newId('evt');
  const created = new Date().toISOString();
  const type: EventType = card.status === 'active' ? 'card.issued' : 'card.issue_failed';
  const body = JSON.stringify({ id, type, created, mode: card.mode, data: { card: resource } });
  const answer = sealBody(ring, claimId, JSON.stringify(resource));
  const [eventId, eventType, eventBody, eventCreated, claim, response] = Array.from(
    { length: 6 },
    (_, index) => `$${firstParameter + index}`,
  );
  return {
    sql: `told AS (
        INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
        SELECT ${eventId}, partner_id, mode, ${eventType}, id, ${eventBody}, ${eventCreated}::timestamptz FROM done
      ), answered AS (
        UPDATE idempotency_claim SET response_status = 201, response_body = ${response}
        WHERE id = ${claim} AND response_status IS NULL AND EXISTS (SELECT FROM done)
      )`,
    values: [id, type, body, created, claimId, answer],
  };
}
