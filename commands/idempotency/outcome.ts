import { type RawBuilder, sql } from 'kysely';
import type { KeyRing } from '../../crypto/key-ring.ts';
import type { EventType } from '../../domain/event.ts';
import type { Mode } from '../../domain/mode.ts';
import { newEvent } from '../webhooks/new-event.ts';
import { type AnsweredClaim, answeredClaimOf, insertAnsweredClaim } from './answer-once.ts';
import type { KeyedRequest } from './claim.ts';
import { type StoredResponse, sealBody } from './response.ts';

/** How an operation ended: its event, and the response to its request, if it has none yet. */
export interface Outcome {
  type: EventType;
  mode: Mode;
  cardId: string;
  /** The event's data: the full resources after the change, each under its name. */
  data: object;
  response: { status: 200 | 201; resource: object };
}

/** The values of a statement that writes a claim's outcome. */
export interface OutcomeValues {
  eventId: string;
  eventType: EventType;
  eventCardId: string;
  eventBody: string;
  eventCreatedAt: string;
  claimId: string;
  responseStatus: number;
  responseBody: Buffer;
}

/** The values of a statement that writes an outcome together with the claim of the request's key. */
export type KeyedOutcomeValues = OutcomeValues & AnsweredClaim;

/** CTEs that write a claim's outcome, for the row in the CTE `done`, which has partner_id and mode. */
export const outcomeOfClaim = (
  values: OutcomeValues,
): RawBuilder<unknown> => sql`${eventCte(values)}, answered AS (
  UPDATE idempotency_claim c SET response_status = ${values.responseStatus}, response_body = ${values.responseBody}
  FROM done WHERE c.id = ${values.claimId} AND c.partner_id = done.partner_id AND c.mode = done.mode
    AND c.response_status IS NULL)`;

/**
 * The same for a request, whose key, if it has one, is claimed together with the response.
 * @returns `isStored`: whether it was. If not, another request has claimed the key: roll back
 */
export function outcomeOfRequest(
  values: KeyedOutcomeValues,
  isKeyed: boolean,
): { ctes: RawBuilder<unknown>; isStored: RawBuilder<boolean> } {
  if (!isKeyed) return { ctes: eventCte(values), isStored: sql<boolean>`true` };
  return {
    ctes: sql`${eventCte(values)}, answered AS (${insertAnsweredClaim(values, 'done')})`,
    isStored: sql<boolean>`EXISTS (SELECT FROM answered)`,
  };
}

/** Builds a statement for requests with an Idempotency-Key, and for those without one. */
export function forRequests<Statement>(
  build: (isKeyed: boolean) => Statement,
): (request: KeyedRequest) => Statement {
  const [keyed, keyless] = [build(true), build(false)];
  return ({ key }) => (key === null ? keyless : keyed);
}

const eventCte = (values: OutcomeValues) => sql`told AS (
  INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
  SELECT ${values.eventId}, partner_id, mode, ${values.eventType}, ${values.eventCardId}, ${values.eventBody},
    ${values.eventCreatedAt}::timestamptz
  FROM done)`;

export const responseOf = ({ response: { status, resource } }: Outcome): StoredResponse => ({
  status,
  body: JSON.stringify(resource),
});

export function claimOutcome(ring: KeyRing, claimId: string, outcome: Outcome): OutcomeValues {
  const { status, body } = responseOf(outcome);
  return {
    ...eventOf(outcome),
    claimId,
    responseStatus: status,
    responseBody: sealBody(ring, claimId, body),
  };
}

export const requestOutcome = (
  ring: KeyRing,
  request: KeyedRequest,
  outcome: Outcome,
): KeyedOutcomeValues => ({
  ...eventOf(outcome),
  ...answeredClaimOf(ring, request, responseOf(outcome)),
});

function eventOf({ type, mode, cardId, data }: Outcome) {
  const { id, created, body } = newEvent({ type, mode, data });
  return { eventId: id, eventType: type, eventCardId: cardId, eventBody: body, eventCreatedAt: created };
}
