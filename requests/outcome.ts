import { type RawBuilder, sql } from 'kysely';
import type { AccountClock } from '../domain/account-clock.ts';
import type { EventType } from '../domain/event.ts';
import type { Mode } from '../domain/mode.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import { type Cte, cte, withCtes, writeStatement } from '../platform/db/sql.ts';
import type { KeyedRequest } from './claim.ts';
import type { OpenCommand } from './command-context.ts';
import { type AccountColumns, insertEvents, newEvent } from './event.ts';
import {
  type ClaimWithResponse,
  claimWithResponse,
  type KeyedResponse,
  requireStored,
  storeKeyed,
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
  /** The event, as {@link insertEvents} takes it. */
  event: string;
  claimId: string;
  responseStatus: number;
  responseBody: Buffer;
}

/** The values of a statement that writes an outcome together with the claim of the request's key. */
export type KeyedOutcomeValues = OutcomeValues & ClaimWithResponse;

/** Writes the outcome of the claim of a change: its event, and the response unless there is one. */
export const endClaim = (changed: Cte<AccountColumns>, values: OutcomeValues): Cte<unknown>[] => [
  cte('reported', insertEvents(values.event, changed.rows)),
  cte(
    'answered',
    sql`
  UPDATE idempotency_claim c SET response_status = ${values.responseStatus},
    response_body = ${values.responseBody}
  FROM ${changed.rows} changed WHERE c.id = ${values.claimId} AND c.partner_id = changed.partner_id
    AND c.mode = changed.mode
    AND c.response_status IS NULL`,
  ),
];

/**
 * Writes the outcome of a request: its event, and the response together with the claim of its key.
 * @returns `isStored`: whether it was. If not, another request has claimed the key: roll back
 */
export function endRequest(
  changed: Cte<AccountColumns>,
  values: KeyedOutcomeValues,
): { ctes: Cte<unknown>[]; isStored: RawBuilder<boolean> } {
  const { answered, isStored } = storeKeyed(changed, values);
  return { ctes: [cte('reported', insertEvents(values.event, changed.rows)), answered], isStored };
}

export const outcomeResponse = ({ response: { status, resource } }: Outcome): StoredResponse => ({
  status,
  body: JSON.stringify(resource),
});

/** @param clock the account's in test mode, which the transaction holds; live mode has none */
export function claimOutcome(
  ring: KeyRing,
  claimId: string,
  outcome: Outcome,
  clock: AccountClock = null,
): OutcomeValues {
  const { status, body } = outcomeResponse(outcome);
  return {
    event: boundEvent(outcome, clock),
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
  event: boundEvent(outcome, clock),
  ...claimWithResponse(ring, request, outcomeResponse(outcome)),
});

const boundEvent = (outcome: Outcome, clock: AccountClock): string =>
  JSON.stringify([newEvent({ ...outcome, clock })]);

/**
 * Writes a change's event, stores the response to its request and the claim of its key, all in the caller's
 * transaction: the end of a change that is one transaction, in either mode.
 */
export async function respondWithEvent(
  { tx, ring }: OpenCommand,
  request: KeyedRequest,
  outcome: Outcome,
  clock: AccountClock,
): Promise<KeyedResponse> {
  const [wrote] = await writeOutcome(tx, requestOutcome(ring, request, outcome, clock));
  requireStored(wrote?.is_stored === true);
  return { replayed: false, response: outcomeResponse(outcome) };
}

const writeOutcome = writeStatement((_, values: KeyedOutcomeValues) => {
  const account = sql<AccountColumns>`SELECT ${values.partnerId}::text AS partner_id,
    ${values.mode}::text AS mode`;
  const changed = cte('changed', account);
  const { ctes, isStored } = endRequest(changed, values);
  return sql<{ is_stored: boolean }>`${withCtes([changed, ...ctes])} SELECT ${isStored} AS is_stored`;
});
