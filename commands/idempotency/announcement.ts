import type { KeyRing } from '../../crypto/key-ring.ts';
import { newId, timeOf } from '../../crypto/new-id.ts';
import type { EventType } from '../../domain/event.ts';
import type { Mode } from '../../domain/mode.ts';
import { claimAnswered } from './answer-once.ts';
import type { KeyedRequest } from './claim.ts';
import { sealBody } from './response.ts';

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
  ctes: string[];
  values: unknown[];
  /** SQL that says whether the answer is the one under the key. */
  kept: string;
}

/**
 * @param answered the claim that waits for an answer; or the request that gets it at once, whose key is claimed with it,
 * if it has one
 * @param firstParameter the number of the first parameter that is free
 */
export function announcementOf(
  ring: KeyRing,
  answered: string | KeyedRequest,
  { type, mode, cardId, data, answer }: News,
  firstParameter: number,
): Announcement {
  const id = newId('evt');
  const created = timeOf(id).toISOString();
  const event = [id, type, cardId, JSON.stringify({ id, type, created, mode, data }), created];
  const [eventId, eventType, eventCard, eventBody, eventCreated] = numbered(event, firstParameter);
  const told = `told AS (
      INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
      SELECT ${eventId}, partner_id, mode, ${eventType}, ${eventCard}, ${eventBody}, ${eventCreated}::timestamptz
      FROM done
    )`;
  const body = JSON.stringify(answer.resource);
  const next = firstParameter + event.length;
  if (typeof answered === 'string') {
    const values = [answered, answer.status, sealBody(ring, answered, body)];
    const [claim, status, response] = numbered(values, next);
    const update = `answered AS (
      UPDATE idempotency_claim SET response_status = ${status}, response_body = ${response}
      WHERE id = ${claim} AND response_status IS NULL AND EXISTS (SELECT FROM done)
    )`;
    return { ctes: [told, update], values: [...event, ...values], kept: 'true' };
  }
  if (answered.key === null) return { ctes: [told], values: event, kept: 'true' };
  const claim = claimAnswered(ring, answered, { status: answer.status, body }, next, 'done');
  return {
    ctes: [told, `answered AS (${claim.sql})`],
    values: [...event, ...claim.values],
    kept: 'EXISTS (SELECT FROM answered)',
  };
}

const numbered = (values: unknown[], first: number): string[] =>
  values.map((_, index) => `$${first + index}`);
