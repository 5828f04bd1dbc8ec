import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../domain/api-error.ts';

/** How often a header was sent; Node keeps only one of some that are repeated. */
export function timesSent(req: IncomingMessage, name: string): number {
  let times = 0;
  for (let i = 0; i < req.rawHeaders.length; i += 2) {
    if (req.rawHeaders[i]?.toLowerCase() === name) times += 1;
  }
  return times;
}

/**
 * Which of two a caller meant can't be known, whether the route needs the header or not (decisions.md, "Envelope").
 * @throws ApiError `idempotency_key_invalid`, `validation_failed`
 */
export function refuseRepeated(req: IncomingMessage): void {
  if (timesSent(req, 'idempotency-key') > 1) throw keyError('idempotency_key_invalid');
  if (timesSent(req, 'content-type') > 1)
    throw ApiError.ofField('Content-Type', 'Content-Type must be sent once');
}

/**
 * The Idempotency-Key of a request (decisions.md, "Envelope" and "Idempotency"); an empty one counts as missing, and is what
 * comes back for a missing one that is not required.
 * @throws ApiError `idempotency_key_missing`, `idempotency_key_invalid`
 */
export function idempotencyKeyOf(req: IncomingMessage, use: 'required' | 'accepted' | undefined): string {
  const key = use === undefined ? '' : req.headers['idempotency-key'];
  if (typeof key !== 'string' || key === '') {
    if (use === 'required') throw keyError('idempotency_key_missing');
    return '';
  }
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) throw keyError('idempotency_key_invalid');
  return key;
}

/** The error for a missing or malformed Idempotency-Key. */
export function keyError(code: 'idempotency_key_missing' | 'idempotency_key_invalid'): ApiError {
  const message = 'Idempotency-Key must be sent once and have 1 to 255 printable ASCII characters';
  return new ApiError(code, { issues: [{ path: 'Idempotency-Key', message }] });
}
