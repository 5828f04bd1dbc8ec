import assert from 'node:assert/strict';
import { ApiError } from '../../../domain/api-error.ts';
import { ERRORS, type ErrorCode } from '../../../domain/error-catalogue.ts';
import { describeError } from '../../../platform/process/describe-error.ts';
import { presentError } from '../../../requests/error-resource.ts';

describe('the error catalogue', () => {
  // Partners branch on the codes (docs/partners/errors.md), so they are written out once more.
  const BY_STATUS: Record<number, string> = {
    400: 'validation_failed idempotency_key_missing idempotency_key_invalid',
    401: 'invalid_api_key',
    402: 'insufficient_funds provider_declined',
    403: 'secure_details_disabled test_key_not_allowed live_key_not_allowed',
    404: 'not_found card_not_found',
    405: 'method_not_allowed',
    409: 'external_ref_taken idempotency_in_flight no_product_configured invalid_state',
    413: 'body_too_large',
    415: 'unsupported_media_type',
    422: 'idempotency_conflict limit_exceeded product_not_allowed',
    429: 'rate_limited',
    431: 'headers_too_large',
    500: 'internal_error',
    503: 'unavailable',
  };
  const TYPES: Record<string, string> = {
    ...{ 400: 'invalid_request', 401: 'authentication', 402: 'payment', 403: 'permission', 404: 'not_found' },
    ...{ 405: 'invalid_request', 409: 'conflict', 413: 'invalid_request', 415: 'invalid_request' },
    ...{ 429: 'rate_limit', 431: 'invalid_request', 500: 'api', 503: 'api' },
    ...{ idempotency_conflict: 'conflict', limit_exceeded: 'limit', product_not_allowed: 'invalid_request' },
  };

  it("has the contract's codes with their statuses and types", () => {
    for (const [status, codes] of Object.entries(BY_STATUS)) {
      for (const code of codes.split(' ')) {
        const entry = ERRORS[code as ErrorCode];
        assert.equal(entry?.status, Number(status), code);
        assert.equal(entry.type, TYPES[code] ?? TYPES[status], code);
      }
    }
  });

  it('says in a sentence what to do about each error', () => {
    for (const { message } of Object.values(ERRORS)) assert.match(message, /^\w.{20,}\.$/);
  });

  it('keeps the Idempotency-Key while the outcome is unknown, and asks for a new one only if nothing was done', () => {
    for (const code of ['internal_error', 'unavailable', 'idempotency_in_flight', 'rate_limited'] as const) {
      assert.match(ERRORS[code].message, /with the same (Idempotency-Key|key)/, code);
    }
    for (const [code, { message, status }] of Object.entries(ERRORS)) {
      if (!/new (Idempotency-Key|key)(?! could)/i.test(message)) continue;
      assert.ok([402, 409, 422].includes(status), code);
      assert.match(message, /nothing was (debited|moved)|debited nothing|did nothing/, code);
    }
  });
});

describe('an error body', () => {
  it('has param and issues if fields are at fault, and neither otherwise', () => {
    assert.deepEqual(presentError(new ApiError('card_not_found'), 'req_1'), {
      error: {
        ...{ type: 'not_found', code: 'card_not_found', message: ERRORS.card_not_found.message },
        request_id: 'req_1',
      },
    });
    const issues = [
      { path: 'a', message: 'a is wrong' },
      { path: 'b', message: 'b is wrong' },
    ];
    assert.deepEqual(presentError(ApiError.ofFields([...issues, { path: 'a', message: 'twice' }]), 'req_1'), {
      error: {
        ...{ type: 'invalid_request', code: 'validation_failed', message: 'a is wrong; b is wrong' },
        ...{ param: 'a', issues, request_id: 'req_1' },
      },
    });
  });
});

/** What it says of which errors is in test/unit/platform/temporal/failure-converter.test.ts. */
describe('describeError', () => {
  it("keeps the stack's frames without the first lines, which repeat the message", () => {
    const { stack } = describeError(new Error('first\nsecond'));
    assert.match(stack ?? '', /^ {4}at /);
    assert.doesNotMatch(stack ?? '', /first|second/);
  });
});
