import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Mode } from '../../../domain/mode.ts';
import type { TestPartner } from '../stack.ts';

/** Posts with a new Idempotency-Key, which has to succeed. @returns the answer's body */
// biome-ignore lint/suspicious/noExplicitAny: whatever the API returns.
export async function post(partner: TestPartner, path: string, body?: object, mode?: Mode): Promise<any> {
  const answer = await partner.call('POST', path, { mode, body, idempotencyKey: randomUUID() });
  assert.ok(answer.status < 300, `${path}: ${answer.text}`);
  return answer.json;
}
