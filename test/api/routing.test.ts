import assert from 'node:assert/strict';
import { DECLARATIONS } from '../../api/routes.ts';
import { expectError } from '../support/api/answers.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner } from '../support/stack.ts';

describe('the API', () => {
  let partner: TestPartner;
  let origin: string;
  before(async () => {
    const stack = await sharedStack('api');
    partner = await stack.createPartner();
    origin = `http://${stack.config.host}:${stack.config.port}`;
  });

  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(origin + path, init);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const PATHS = '/v1 /v1/ /v1/card /v1/cards/x/y /v2/ping /ping /v1/ping/x /v1/%zz /v1/%00'.split(' ');
  for (const path of PATHS) {
    it(`answers 404 for ${path} with a key, and 401 under /v1 without one`, async () => {
      const headers = { authorization: `Bearer ${partner.keys.test}` };
      expectError(await ask(path, { headers }), 'not_found');
      expectError(await ask(path, { method: 'POST', body: '{}', headers }), 'not_found');
      expectError(await ask(path), path.startsWith('/v1') ? 'invalid_api_key' : 'not_found');
    });
  }

  const methodsOf = Map.groupBy(DECLARATIONS, ({ path }) => path.replace(/:\w+/g, 'x'));
  for (const [path, declarations] of methodsOf) {
    const declared = declarations.map(({ method }) => method.toUpperCase());
    const allowed = [...declared, ...(declared.includes('GET') ? ['HEAD'] : [])].sort().join(', ');
    it(`answers 405 on ${path} for all methods except ${allowed}, which Allow lists`, async () => {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
        if (allowed.split(', ').includes(method)) continue;
        const answer = await partner.call(method, path);
        expectError(answer, 'method_not_allowed');
        assert.equal((answer.headers.get('allow') ?? '').split(', ').sort().join(', '), allowed);
      }
    });
  }

  it('leads from / to the reference', async () => {
    const response = await fetch(`${origin}/`, { redirect: 'manual' });
    assert.deepEqual([response.status, response.headers.get('location')], [302, '/docs']);
  });

  it('names the path under /v1 that a path without it means', async () => {
    for (const [method, path] of [
      ['GET', '/cards'],
      ['POST', '/cards/card_1/topups?x=1'],
    ] as const) {
      const answer = await ask(path, { method });
      expectError(answer, 'not_found');
      assert.ok(answer.text.includes(`Send the request to /v1${path.split('?')[0]}."`), answer.text);
    }
  });

  it('answers 404 and 405 outside /v1 in the same format', async () => {
    for (const [method, path, code] of [
      ['POST', '/healthz', 'method_not_allowed'],
      ['DELETE', '/openapi.json', 'method_not_allowed'],
      ['GET', '/network/callbacks', 'method_not_allowed'],
      ['GET', '/docs/x', 'not_found'],
    ] as const)
      expectError(await ask(path, { method }), code);
  });
});

describe('every response', () => {
  let partner: TestPartner;
  before(async () => {
    partner = await (await sharedStack('api')).createPartner();
  });

  it('ends in a newline, so that a terminal shows it well', async () => {
    const create = { body: { amount: 100 }, idempotencyKey: 'one' };
    for (const { text } of [
      await partner.call('GET', '/ping'),
      await partner.call('GET', '/nothing'),
      await partner.call('POST', '/test/credit', create),
      await partner.call('POST', '/test/credit', create),
    ])
      assert.match(text, /\}\n$/);
  });

  it('has a new Request-Id each time, whatever the caller sends', async () => {
    const seen = new Set<string>();
    for (const path of ['/ping', '/ping', '/nothing', '/cards?limit=0']) {
      const headers = { 'X-Request-Id': 'req_mine', 'Request-Id': 'req_mine' };
      const answer = await partner.call('GET', path, { headers });
      const id = answer.headers.get('request-id') ?? '';
      assert.match(id, /^req_[0-9a-z]{26}$/);
      seen.add(id);
    }
    assert.equal(seen.size, 4);
  });

  it('has headers against caching, framing, sniffing and scripts', async () => {
    for (const path of ['/ping', '/nothing', '/cards?limit=0']) {
      const { headers } = await partner.call('GET', path);
      assert.equal(headers.get('cache-control'), 'no-store');
      assert.equal(headers.get('content-security-policy'), "default-src 'none';frame-ancestors 'none'");
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.match(headers.get('strict-transport-security') ?? '', /max-age=\d{7,}/);
      assert.equal(headers.get('referrer-policy'), 'no-referrer');
      assert.equal(headers.get('x-powered-by'), null);
    }
  });
});
