import { sql } from 'kysely';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { CLAIM_ANSWERED, EVENT_WRITTEN } from '../../db/notifications.ts';
import { readStatement, writeStatement } from '../../db/sql.ts';
import type { ApiError } from '../../domain/api-error.ts';
import { presentError } from '../../resources/error.ts';
import type { CommandContext, OpenCommand } from '../command-context.ts';

/** The response to a request exactly as it is sent: the status and the body's text. */
export interface StoredResponse {
  status: number;
  body: string;
}

// Responses and requests can contain a cardholder's name, so they are sealed in the claim's row, each bound to its claim and
// column.

/** The context that they are sealed for. */
export const requestContext = (claimId: string): string => `${claimId}/request`;
export const responseContext = (claimId: string): string => `${claimId}/response`;

export const sealRequest = (ring: KeyRing, claimId: string, request: unknown): Buffer =>
  ring.seal(JSON.stringify(request), requestContext(claimId));

export const openRequest = (ring: KeyRing, claimId: string, sealed: Buffer): unknown =>
  JSON.parse(ring.open(sealed, requestContext(claimId)));

export const sealBody = (ring: KeyRing, claimId: string, body: string): Buffer =>
  ring.seal(body, responseContext(claimId));

export const openBody = (ring: KeyRing, claimId: string, sealed: Buffer): string =>
  ring.open(sealed, responseContext(claimId));

/**
 * Stores a claim's response in the caller's transaction, unless there is one already.
 * @returns the response, or null if it was not stored
 */
export async function storeResponse(
  { tx, ring }: OpenCommand,
  claimId: string,
  status: number,
  resource: unknown,
): Promise<StoredResponse | null> {
  const body = JSON.stringify(resource);
  const stored = await store(tx, { claimId, status, body: sealBody(ring, claimId, body) });
  return stored.length > 0 ? { status, body } : null;
}

/** {@link storeResponse} with the error's body, which has the id of the request that made the claim. */
export async function storeError(
  command: OpenCommand,
  claimId: string,
  error: ApiError,
): Promise<StoredResponse | null> {
  const [claim] = await requestOf(command.tx, { claimId });
  if (claim === undefined) throw new Error(`there is no idempotency claim ${claimId}`);
  return storeResponse(command, claimId, error.status, presentError(error, claim.request_id));
}

const store = writeStatement(
  (db, response: { claimId: string; status: number; body: Buffer }) =>
    db
      .updateTable('idempotency_claim')
      .set({ response_status: response.status, response_body: response.body })
      .where('id', '=', response.claimId)
      .where('response_status', 'is', null)
      .returning('id'),
  { acrossTenants: 'id' },
);

const requestOf = readStatement(
  (db, { claimId }: { claimId: string }) =>
    db.selectFrom('idempotency_claim').select('request_id').where('id', '=', claimId),
  { acrossTenants: 'id' },
);

/** The stored response of a claim; null while it has none. */
export async function readClaimResponse(
  { orm, ring }: CommandContext,
  claimId: string,
): Promise<StoredResponse | null> {
  const [row] = await responseOf(orm.em.fork(), { claimId });
  return row === undefined
    ? null
    : { status: row.response_status, body: openBody(ring, claimId, row.response_body) };
}

const responseOf = readStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim')
      .select(['response_status', 'response_body'])
      .where('id', '=', claimId)
      .where('response_status', 'is not', null)
      .$narrowType<{ response_status: number; response_body: Buffer }>(),
  { acrossTenants: 'id' },
);

/** PostgreSQL takes payloads of up to 8,000 bytes; base64 makes 6,800 of these. */
const MAX_BYTES = 5_000;

/**
 * Notifies the process that waits for a claim's response, before Temporal has recorded the workflow task that produced it,
 * and notifies the relays if there is an event to send. It is a separate statement after the commit, because NOTIFY inside a
 * transaction makes commits wait for each other. It includes the sealed response, unless that is too long.
 */
export async function notifyResponse({ orm }: Pick<CommandContext, 'orm'>, claimId: string): Promise<void> {
  await notify(orm.em.fork(), { claimId });
}

const notify = readStatement(
  (_, { claimId }: { claimId: string }) => sql`
    SELECT pg_notify(${sql.lit(CLAIM_ANSWERED)}, concat_ws(' ', ${claimId}::text,
        (SELECT concat_ws(' ', c.response_status, encode(c.response_body, 'base64')) FROM idempotency_claim c
         WHERE c.id = ${claimId} AND octet_length(c.response_body) <= ${sql.lit(MAX_BYTES)}))),
      CASE WHEN EXISTS (SELECT FROM delivery WHERE status = 'pending') THEN pg_notify(${sql.lit(EVENT_WRITTEN)}, '') END`,
  { acrossTenants: 'id' },
);

/** {@link notifyResponse} for callers that do not wait. @param onError receives the error if a notification was lost */
export function createResponseNotifier(
  orm: CommandContext['orm'],
  onError: (claimId: string, error: unknown) => void,
): (claimId: string) => void {
  return (claimId) => {
    notifyResponse({ orm }, claimId).catch((error: unknown) => onError(claimId, error));
  };
}

/** A notification that a claim has its response. */
export interface ResponseNotice {
  claimId: string;
  /** The response; null if it was too long to be included. */
  open(ring: CommandContext['ring']): StoredResponse | null;
}

/** Reads what {@link notifyResponse} sent. */
export function readResponseNotice(payload: string): ResponseNotice {
  const [claimId = '', status, body] = payload.split(' ');
  return {
    claimId,
    open: (ring) =>
      body === undefined
        ? null
        : { status: Number(status), body: openBody(ring, claimId, Buffer.from(body, 'base64')) },
  };
}
