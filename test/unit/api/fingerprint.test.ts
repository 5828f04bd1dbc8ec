import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { fingerprintRequest } from '../../../api/http/keyed.ts';
import type { Method } from '../../../api/http/route.ts';
import { CreateCardRequest } from '../../../cards/resource.ts';

describe('the fingerprint of a request with an Idempotency-Key', () => {
  const hex = (method: Method, path: string, body: unknown) =>
    fingerprintRequest(method, path, body).toString('hex');

  it('differs for each method, with or without a body', () => {
    const methods: Method[] = ['get', 'post', 'put', 'patch', 'delete'];
    for (const body of [undefined, {}]) {
      assert.equal(new Set(methods.map((method) => hex(method, '/v1/x', body))).size, methods.length);
    }
    assert.notEqual(hex('delete', '/v1/x', undefined), hex('delete', '/v1/y', undefined));
  });

  it('is the one that releases before have stored', () => {
    const stored = createHash('sha256').update('POST /v1/cards\n{"amount":5}').digest('hex');
    assert.equal(hex('post', '/v1/cards', { amount: 5 }), stored);
  });

  it('is the same in whatever order fields and keys of metadata come', () => {
    const first = { amount: 5_000, external_ref: 'r', metadata: { a: '1', b: '2' } };
    const second = { metadata: { b: '2', a: '1' }, external_ref: 'r', amount: 5_000 };
    const [one, other] = [first, second].map((body) =>
      hex('post', '/v1/cards', CreateCardRequest.parse(body)),
    );
    assert.equal(one, other);
  });
});
