import { createHash } from 'node:crypto';

/**
 * What makes two requests the same (decisions.md, "Idempotency"): method, path and the parsed body. A validated body has
 * its fields in the schema's order, whatever order they came in.
 */
export function fingerprintOf(method: string, path: string, body: unknown): Buffer {
  return createHash('sha256')
    .update(`${method} ${path}\n${JSON.stringify(body)}`)
    .digest();
}
