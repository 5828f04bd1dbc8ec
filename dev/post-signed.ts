import { signStandardWebhook } from '../issuers/standard-webhooks.ts';

/**
 * Posts a signed Standard Webhook, as issuers do.
 * @param at the time that is signed
 * @returns null if nobody answers in time
 */
export async function postSigned(
  url: string,
  { id, body }: { id: string; body: string },
  keys: readonly Buffer[],
  { at = new Date(), timeoutMs }: { at?: Date; timeoutMs: number },
): Promise<{ status: number; text: string } | null> {
  const timestamp = String(Math.floor(at.getTime() / 1_000));
  const signatures = keys.map((key) => signStandardWebhook({ id, timestamp }, body, key));
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': signatures.join(' '),
      },
      body,
      signal: AbortSignal.timeout(timeoutMs),
    });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    // Nobody listens (TypeError), or the answer takes too long (DOMException).
    if (error instanceof TypeError || error instanceof DOMException) return null;
    throw error;
  }
}
