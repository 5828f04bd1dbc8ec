import type { WebhookClient } from '../../adapters/webhooks/webhook-client.ts';
import { sealAnswerStart } from '../../commands/idempotency/answer-start.ts';
import { openEndpointSecret } from '../../commands/webhooks/endpoint-secret.ts';
import type { Attempt } from '../../commands/webhooks/record-attempts.ts';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { signEvent } from '../../crypto/webhook-signing.ts';
import type { Mode } from '../../domain/mode.ts';

/** An event and where it goes, by the endpoint's row. */
export interface Delivery {
  event_id: string;
  partner_id: string;
  mode: Mode;
  body: string;
  url: string;
  standard_headers: boolean;
  secret: Buffer;
  previous_secret: Buffer | null;
}

export type AttemptMade = Omit<Attempt, 'status' | 'nextAttemptMs'>;

/** Sends an event once, signed now, to where its endpoint is now. What the receiver does is never an error. */
export async function attemptWebhook(
  { ring, webhooks }: { ring: KeyRing; webhooks: WebhookClient },
  delivery: Delivery,
): Promise<AttemptMade> {
  const { event_id: eventId, body, url, previous_secret: previous } = delivery;
  const startedAt = new Date();
  const current = openEndpointSecret(ring, delivery, delivery.secret);
  const headers = signEvent({
    eventId,
    body,
    secrets: previous === null ? [current] : [current, openEndpointSecret(ring, delivery, previous)],
    standardWebhooks: delivery.standard_headers,
    nowMs: startedAt.getTime(),
  });
  const { outcome, httpStatus, error, durationMs, answerStart } = await webhooks.deliver({
    url,
    body,
    headers,
  });
  const failure = outcome === 'delivered' ? null : (error ?? `http_${httpStatus}`);
  return {
    eventId,
    startedAt,
    durationMs,
    httpStatus,
    error: failure,
    answerStart: failure && answerStart ? sealAnswerStart(ring, eventId, answerStart) : null,
  };
}
