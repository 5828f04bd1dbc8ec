import { type RawBuilder, sql } from 'kysely';
import type { AccountClock } from '../domain/account-clock.ts';
import type { EventType } from '../domain/event.ts';
import type { Mode } from '../domain/mode.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import { writeStatement } from '../platform/db/sql.ts';
import type { KeyedRequest } from './claim.ts';
import type { OpenCommand } from './command-context.ts';
import { newEvent } from './new-event.ts';
import {
  type ClaimWithResponse,
  claimWithResponse,
  insertClaimWithResponse,
  type KeyedResponse,
  requireStored,
} from './respond-once.ts';
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
export type KeyedOutcomeValues = OutcomeValues & ClaimWithResponse;

/** CTEs that write a claim's outcome, for the row in the CTE `done`, which has partner_id and mode. */
export const writeClaimOutcome = (
  values: OutcomeValues,
): RawBuilder<unknown> => sql`${eventCte(values)}, answered AS (
  UPDATE idempotency_claim c SET response_status = ${values.responseStatus}, response_body = ${values.responseBody}
  FROM done WHERE c.id = ${values.claimId} AND c.partner_id = done.partner_id AND c.mode = done.mode
    AND c.response_status IS NULL)`;

/**
 * The same for a request, whose key, if it has one, is claimed together with the response.
 * @returns `isStored`: whether it was. If not, another request has claimed the key: roll back
 */
export function writeRequestOutcome(
  values: KeyedOutcomeValues,
  isKeyed: boolean,
): { ctes: RawBuilder<unknown>; isStored: RawBuilder<boolean> } {
  if (!isKeyed) return { ctes: eventCte(values), isStored: sql<boolean>`true` };
  return {
    ctes: sql`${eventCte(values)}, answered AS (${insertClaimWithResponse(values, 'done')})`,
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

const eventCte = (values: OutcomeValues) => sql`reported AS (
  INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
  SELECT ${values.eventId}, partner_id, mode, ${values.eventType}, ${values.eventCardId}, ${values.eventBody},
    ${values.eventCreatedAt}::timestamptz
  FROM done)`;

export const outcomeResponse = ({ response: { status, resource } }: Outcome): StoredResponse => ({
  status,
  body: JSON.stringify(resource),
});

export function claimOutcome(ring: KeyRing, claimId: string, outcome: Outcome): OutcomeValues {
  const { status, body } = outcomeResponse(outcome);
  return {
    // Test mode has no claims that wait for an outcome.
    ...outcomeEvent(outcome, null),
    claimId,
    responseStatus: status,
    responseBody: sealBody(ring, claimId, body),
  };
}

export const requestOutcome = (
  ring: KeyRing,
  request: KeyedRequest,
  outcome: Outcome,
  clock: AccountClock,
): KeyedOutcomeValues => ({
  ...outcomeEvent(outcome, clock),
  ...claimWithResponse(ring, request, outcomeResponse(outcome)),
});

function outcomeEvent({ type, mode, cardId, data }: Outcome, clock: AccountClock) {
  const { id, created, body } = newEvent({ type, mode, data, clock });
  return { eventId: id, eventType: type, eventCardId: cardId, eventBody: body, eventCreatedAt: created };
}

/**
 * Writes a change's event, stores the response to its request and the claim of its key, all in the caller's transaction: the end
 * of a change that is one transaction, in either mode.
 */
export async function respondWithEvent(
  { tx, ring }: OpenCommand,
  request: KeyedRequest,
  outcome: Outcome,
  clock: AccountClock,
): Promise<KeyedResponse> {
  const [wrote] = await writeOutcome(request)(tx, requestOutcome(ring, request, outcome, clock));
  requireStored(wrote?.is_stored === true);
  return { replayed: false, response: outcomeResponse(outcome) };
}

const writeOutcome = forRequests((isKeyed) =>
  writeStatement((_, values: KeyedOutcomeValues) => {
    const { ctes, isStored } = writeRequestOutcome(values, isKeyed);
    return sql<{ is_stored: boolean }>`
      WITH done AS (SELECT ${values.partnerId}::text AS partner_id, ${values.mode}::text AS mode), ${ctes}
      SELECT ${isStored} AS is_stored`;
  }),
);
