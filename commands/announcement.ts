import type { KeyRing } from '../db/key-ring.ts';
import { newId } from '../db/new-id.ts';
import type { EventType } from '../domain/event-type.ts';
import type { Mode } from '../domain/mode.ts';
import { sealBody } from './idempotency-response.ts';

/** What the end of an operation says to the partner. */
export interface News {
  type: EventType;
  mode: Mode;
  cardId: string;
  /** The event's data: full resources after the change, each under its name. */
  data: object;
  /** What answers the claim, if nothing was answered yet. */
  answer: { status: 200 | 201; resource: object };
}

/** {@link News} as SQL: an event, and the claim's answer. */
export interface Announcement {
  /** CTEs that write it for the row in the CTE `done`, which has partner_id and mode. */
  sql: string;
  values: unknown[];
}

/** @param firstParameter the number of the first parameter that is free */
export function announcementOf(
  ring: KeyRing,
  claimId: string,
  { type, mode, cardId, data, answer }: News,
  firstParameter: number,
): Announcement {
  const id = newId('evt');
  const created = new Date().toISOString();
  const body = JSON.stringify({ id, type, created, mode, data });
  const response = sealBody(ring, claimId, JSON.stringify(answer.resource));
  const values = [id, type, cardId, body, created, claimId, answer.status, response];
  const [eventId, eventType, eventCard, eventBody, eventCreated, claim, status, responseBody] = values.map(
    (_, index) => `$${firstParameter + index}`,
  );
  return {
    sql: `told AS (
        INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
        SELECT ${eventId}, partner_id, mode, ${eventType}, ${eventCard}, ${eventBody}, ${eventCreated}::timestamptz
        FROM done
      ), answered AS (
        UPDATE idempotency_claim SET response_status = ${status}, response_body = ${responseBody}
        WHERE id = ${claim} AND response_status IS NULL AND EXISTS (SELECT FROM done)
      )`,
    values,
  };
}
