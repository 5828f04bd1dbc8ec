import { CLAIM_ANSWERED, EVENT_WRITTEN } from '../../db/notifications.ts';
import { query } from '../../db/sql.ts';
import type { CommandContext } from '../command-context.ts';
import { openBody, type StoredResponse } from './idempotency-response.ts';

/** PostgreSQL takes payloads of up to 8,000 bytes; base64 makes 6,800 of these. */
const MOST_BYTES = 5_000;

/**
 * Tells the process that waits for a claim's answer that it is there, before the workflow task that made it is
 * recorded, and the relays that there is an event to send, if there is. A statement of its own after the commit: NOTIFY
 * inside a transaction makes commits wait for each other. The answer goes along, sealed as it lies in the claim, where
 * it is not too long.
 */
export async function announceAnswer({ orm }: Pick<CommandContext, 'orm'>, claimId: string): Promise<void> {
  await query(
    orm.em.fork(),
    `SELECT pg_notify($1, concat_ws(' ', $2::text,
         (SELECT concat_ws(' ', c.response_status, encode(c.response_body, 'base64')) FROM idempotency_claim c
          WHERE c.id = $2 AND octet_length(c.response_body) <= ${MOST_BYTES}))),
       CASE WHEN EXISTS (SELECT FROM delivery WHERE status = 'pending') THEN pg_notify($3, '') END`,
    [CLAIM_ANSWERED, claimId, EVENT_WRITTEN],
  );
}

/** {@link announceAnswer} for who does not wait for it. @param onError is told what went wrong: a hint got lost */
export function createAnswerAnnouncer(
  orm: CommandContext['orm'],
  onError: (claimId: string, error: unknown) => void,
): (claimId: string) => void {
  return (claimId) => {
    announceAnswer({ orm }, claimId).catch((error: unknown) => onError(claimId, error));
  };
}

/** That a claim has its answer. */
export interface AnswerHint {
  claimId: string;
  /** The answer; null where it did not go along. */
  open(ring: CommandContext['ring']): StoredResponse | null;
}

/** Reads what {@link announceAnswer} sent. */
export function readAnswerHint(payload: string): AnswerHint {
  const [claimId = '', status, body] = payload.split(' ');
  return {
    claimId,
    open: (ring) =>
      body === undefined
        ? null
        : { status: Number(status), body: openBody(ring, claimId, Buffer.from(body, 'base64')) },
  };
}
