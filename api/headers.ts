import type { IncomingMessage } from 'node:http';
import { ApiError } from '../domain/api-error.ts';

/** How often a header was sent; Node keeps only one of some that are repeated. */
export function timesSent(req: IncomingMessage, name: string): number {
  let times = 0;
  for (let i = 0; i < req.rawHeaders.length; i += 2) {
    if (req.rawHeaders[i]?.toLowerCase() === name) times += 1;
  }
  return times;
}

/**
 * The Idempotency-Key of a request (decisions.md, "Envelope" and "Idempotency"); an empty one counts as missing.
 * @throws ApiError `idempotency_key_missing`, `idempotency_key_invalid`
 */
export function idempotencyKeyOf(req: IncomingMessage): string {
  const issues = [{ path: 'Idempotency-Key', message: 'Idempotency-Key must be sent once, not empty' }];
  if (timesSent(req, 'idempotency-key') > 1) throw new ApiError('idempotency_key_invalid', { issues });
  const key = req.headers['idempotency-key'];
  if (typeof key !== 'string' || key === '') throw new ApiError('idempotency_key_missing', { issues });
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) throw new ApiError('idempotency_key_invalid', { issues });
  return key;
}
