import assert from 'node:assert/strict';
import type { Answer } from '../stack.ts';

/** Fails unless `replayed` is the first answer again, byte for byte, and says so. */
export function expectReplay(replayed: Answer, first: Answer): void {
  assert.equal(first.headers.get('idempotent-replayed'), null);
  assert.equal(replayed.headers.get('idempotent-replayed'), 'true');
  assert.equal(replayed.status, first.status);
  assert.equal(replayed.text, first.text);
  assert.equal(replayed.headers.get('content-type'), first.headers.get('content-type'));
  assert.notEqual(replayed.headers.get('request-id'), first.headers.get('request-id'));
}
