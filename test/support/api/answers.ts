import assert from 'node:assert/strict';
import { ERRORS, type ErrorCode } from '../../../domain/error-catalogue.ts';
import { ErrorBody } from '../../../requests/error-resource.ts';
import type { Answer } from '../stack.ts';

interface Answered {
  status: number;
  headers: Headers;
  text: string;
}

/**
 * Fails unless the answer is this error, whole: the catalogue's status and type, the body's fields and no others, and
 * the id of the request in both places.
 * @param paths of the issues, in any order; none where the error is not about fields
 */
export function expectError(answer: Answered, code: ErrorCode, paths: readonly string[] = []): void {
  assert.equal(answer.status, ERRORS[code].status, answer.text);
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8');
  const { error } = ErrorBody.parse(JSON.parse(answer.text));
  assert.deepEqual(JSON.parse(answer.text), { error });
  assert.equal(error.code, code, answer.text);
  assert.equal(error.type, ERRORS[code].type);
  assert.notEqual(error.message, '');
  assert.match(error.request_id, /^req_[0-9a-z]{26}$/);
  assert.equal(error.request_id, answer.headers.get('request-id'));
  assert.deepEqual(error.issues?.map((issue) => issue.path).sort() ?? [], [...paths].sort(), answer.text);
  assert.equal(error.param, error.issues?.[0]?.path);
}

/** Fails unless `replayed` is the first answer again, byte for byte, and says so. */
export function expectReplay(replayed: Answer, first: Answer): void {
  assert.equal(first.headers.get('idempotent-replayed'), null);
  assert.equal(replayed.headers.get('idempotent-replayed'), 'true');
  assert.equal(replayed.status, first.status);
  assert.equal(replayed.text, first.text);
  assert.equal(replayed.headers.get('content-type'), first.headers.get('content-type'));
  assert.notEqual(replayed.headers.get('request-id'), first.headers.get('request-id'));
}
