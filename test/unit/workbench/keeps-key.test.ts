import assert from 'node:assert/strict';
import { CardIssuingConnectionError, CardIssuingError, type ErrorDetails } from '../../../client/errors.ts';
import { keepsKey } from '../../../workbench/keeps-key.ts';

const refused = (status: number, code: ErrorDetails['code']) =>
  new CardIssuingError('…', {
    ...{ status, code, type: 'invalid_request', param: null, issues: [] },
    ...{ requestId: null, idempotencyKey: 'k', operationId: null, retryAfterSeconds: null },
  });

describe('the workbench, asked to do again what had an error,', () => {
  for (const [error, what] of [
    [new CardIssuingConnectionError('connection_failed', '…', 'k', null), 'no response'],
    [new CardIssuingConnectionError('timed_out', '…', 'k', null), 'no response in time'],
    [refused(500, 'internal_error'), '500'],
    [refused(503, 'unavailable'), '503'],
    [refused(200, 'unexpected_response'), 'half a response'],
    [refused(409, 'unexpected_response'), "a proxy's response"],
    [refused(409, 'idempotency_in_flight'), 'its first request still running'],
    [refused(429, 'rate_limited'), '429'],
    // Refused before it started, and not stored, so a request before it may have been carried out.
    [refused(400, 'validation_failed'), '400'],
    [refused(401, 'invalid_api_key'), '401'],
    [refused(403, 'insufficient_scope'), '403'],
    [refused(404, 'card_not_found'), '404'],
    [new TypeError('…'), "a mistake of the page's own"],
  ] as const)
    it(`sends the same key after ${what}`, () => assert.equal(keepsKey(error), true));

  for (const [status, code] of [
    [402, 'insufficient_funds'],
    [409, 'invalid_state'],
    [409, 'external_ref_taken'],
    [422, 'limit_exceeded'],
    [422, 'idempotency_conflict'],
  ] as const)
    it(`sends a new key after ${status} ${code}, which is stored under the old one`, () =>
      assert.equal(keepsKey(refused(status, code)), false));
});
