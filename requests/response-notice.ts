import { sql } from 'kysely';
import type { Logger } from 'pino';
import { CLAIM_HAS_RESPONSE, EVENT_WRITTEN } from '../platform/db/notifications.ts';
import { readStatement } from '../platform/db/sql.ts';
import { describeError } from '../platform/process/describe-error.ts';
import type { CommandContext } from './command-context.ts';
import { openBody, type StoredResponse } from './response.ts';

/** PostgreSQL takes payloads of up to 8,000 bytes; base64 makes 6,800 of these. */
const MAX_BYTES = 5_000;

/**
 * Notifies the process that waits for a claim's response, before Temporal has recorded the workflow task that produced it,
 * and notifies the relays if there is an event to send. It is a separate statement after the commit, because NOTIFY inside a
 * transaction makes commits wait for each other. It includes the sealed response, unless that is too long.
 */
export const notifyResponse = readStatement(
  (_, { claimId }: { claimId: string }) => sql`
    SELECT pg_notify(${sql.lit(CLAIM_HAS_RESPONSE)}, concat_ws(' ', ${claimId}::text,
        (SELECT concat_ws(' ', c.response_status, encode(c.response_body, 'base64')) FROM idempotency_claim c
         WHERE c.id = ${claimId} AND octet_length(c.response_body) <= ${sql.lit(MAX_BYTES)}))),
      CASE WHEN EXISTS (SELECT FROM delivery WHERE status = 'pending') THEN pg_notify(${sql.lit(EVENT_WRITTEN)}, '') END`,
  { acrossTenants: 'id' },
);

/** {@link notifyResponse} for callers that do not wait. A lost notification is logged. */
export function createResponseNotifier(
  orm: CommandContext['orm'],
  logger: Logger,
): (claimId: string) => void {
  return (claimId) => {
    notifyResponse(orm.em.fork(), { claimId }).catch((error: unknown) =>
      logger.warn(
        { claimId, error: describeError(error) },
        'could not notify the listeners that a claim has its response',
      ),
    );
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
