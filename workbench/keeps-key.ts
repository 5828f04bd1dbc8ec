import { CardIssuingError } from '../client/errors.ts';

/**
 * Whether the same request gets the same Idempotency-Key again after this error
 * (docs/partners/idempotency.md): yes while nobody knows its outcome, so that it is not done twice, and no
 * once the key has stored a refusal, which every repetition would get again.
 */
export function keepsKey(error: unknown): boolean {
  if (!(error instanceof CardIssuingError)) return true;
  // Something in between answered, or nothing did.
  if (error.code === 'unexpected_response' || error.status === null) return true;
  if (error.code === 'idempotency_in_flight') return true;
  return ![402, 409, 422].includes(error.status);
}
