import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { untouchedPartner } from '../support/api/accounts.ts';
import { expectError } from '../support/api/answers.ts';
import { rawRequest, sendRaw } from '../support/api/raw-request.ts';

const JSON_TYPE = ['Content-Type', 'application/json'] as const;

describe('the HTTP server', () => {
  const running = untouchedPartner();

  const auth = () => ['Authorization', `Bearer ${running.partner.keys.test}`] as const;
  const post = (headers: readonly (readonly [string, string])[]) =>
    rawRequest(running.stack, 'POST', '/v1/test/credit', headers, '{"amount":1}');
  const key = (value: string) => ['Idempotency-Key', value] as const;

  it('answers for a repeated header, even with the same value, and for a body without a Content-Type', async () => {
    const ping = (...headers: (readonly [string, string])[]) =>
      rawRequest(running.stack, 'GET', '/v1/ping', [auth(), ...headers]);
    expectError(await post([auth(), auth(), JSON_TYPE, key('k')]), 'invalid_api_key');
    expectError(await ping(['authorization', 'Bearer x']), 'invalid_api_key');
    expectError(await ping(['host', 'localhost']), 'validation_failed', ['Host']);
    for (const again of [JSON_TYPE, ['content-type', 'text/plain'] as const])
      expectError(await post([auth(), JSON_TYPE, again, key('k')]), 'validation_failed', ['Content-Type']);
    expectError(await post([auth(), key('k')]), 'unsupported_media_type');
  });

  const UNREADABLE: Record<string, string> = {
    'bytes that are not HTTP': '\x00\x01\x02\r\n\r\n',
    'a TLS handshake': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    'an unknown method': 'BREW /v1/ping HTTP/1.1\r\nHost: x\r\n\r\n',
    'a NUL in the path': 'GET /v1/pi\x00ng HTTP/1.1\r\nHost: x\r\n\r\n',
    'a path without a slash': 'GET v1/ping HTTP/1.1\r\nHost: x\r\n\r\n',
    'a target that is not a URL': 'GET http://[::1/v1/ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    'the target *': 'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    'no Host': 'GET /v1/ping HTTP/1.1\r\nConnection: close\r\n\r\n',
    'a header without a name': 'GET /v1/ping HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n',
    'a NUL in a header': 'GET /v1/ping HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n',
    'a control character in a header':
      'POST /v1/test/credit HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\x7fb\r\n\r\n',
    'a folded header': 'GET /v1/ping HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n',
    'two lengths': 'POST /v1/quotes HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}',
    'a negative length': 'POST /v1/quotes HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}',
    'a length and chunks':
      'POST /v1/quotes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'chunks and something else':
      'POST /v1/quotes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n',
  };
  for (const [what, bytes] of Object.entries(UNREADABLE)) {
    it(`answers 400 for ${what}`, async () => {
      expectError(await sendRaw(running.stack, Buffer.from(bytes, 'latin1')), 'validation_failed', [
        'request',
      ]);
    });
  }

  const A_LOT = 'a'.repeat(40_000);
  const TOO_LARGE: Record<string, string> = {
    'a path of 40,000 bytes': `GET /v1/${A_LOT} HTTP/1.1\r\nHost: x\r\n\r\n`,
    'a query of 40,000 bytes': `GET /v1/cards?external_ref=${A_LOT} HTTP/1.1\r\nHost: x\r\n\r\n`,
    'headers of 40,000 bytes': `GET /v1/ping HTTP/1.1\r\nHost: x\r\nX: ${A_LOT}\r\n\r\n`,
    'a header name of 40,000 bytes': `GET /v1/ping HTTP/1.1\r\nHost: x\r\n${A_LOT}: x\r\n\r\n`,
    '10,000 headers': `GET /v1/ping HTTP/1.1\r\nHost: x\r\n${'a: b\r\n'.repeat(10_000)}\r\n`,
  };
  for (const [what, bytes] of Object.entries(TOO_LARGE)) {
    it(`answers 431 for ${what}`, async () => {
      expectError(await sendRaw(running.stack, bytes), 'headers_too_large');
    });
  }

  const chunked = (chunks: string) =>
    `POST /v1/test/credit HTTP/1.1\r\nHost: x\r\n${auth().join(': ')}\r\nIdempotency-Key: k\r\n` +
    `Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`;

  it('answers 431 for trailers and 413 for chunk extensions of 40,000 bytes, and 400 for a chunk of no size', async () => {
    for (const [chunks, code, ...paths] of [
      [`2\r\n{}\r\n0\r\nX: ${A_LOT}\r\n\r\n`, 'headers_too_large'],
      [`2;x=${A_LOT}\r\n{}\r\n0\r\n\r\n`, 'body_too_large'],
      ['zz\r\n{}\r\n0\r\n\r\n', 'validation_failed', 'request'],
    ] as const)
      expectError(await sendRaw(running.stack, chunked(chunks)), code, paths);
  });

  it('reads every header, however many there are', async () => {
    const many = Array.from({ length: 2_500 }, () => ['a', ''] as const);
    expectError(await post([auth(), JSON_TYPE, key('k'), ...many, key('k')]), 'idempotency_key_invalid', [
      'Idempotency-Key',
    ]);
  });

  it('answers the requests before the one that it cannot read, and closes the connection', async () => {
    const ping = `GET /v1/ping HTTP/1.1\r\nHost: x\r\n${auth().join(': ')}\r\n\r\n`;
    const balance = ping.replace('/ping', '/balance');
    const tooLarge = TOO_LARGE['headers of 40,000 bytes'] ?? '';
    const first = await sendRaw(running.stack, ping + balance + tooLarge);
    assert.equal(first.status, 200);
    const [pong, held, ...more] = first.text.split(/HTTP\/1\.1 .*\r\n/);
    assert.match(pong ?? '', /"ok":true/);
    assert.match(held ?? '', /"object":"balance"/);
    assert.deepEqual(more, []);
  });

  it('answers once if a request was answered before its body turned out to be unreadable', async () => {
    const { host, port } = running.stack.config;
    const socket = connect(port, host).setEncoding('utf8');
    socket.write(chunked('').replace(auth().join(': '), 'Authorization: Bearer x'));
    const [answer] = await once(socket, 'data');
    assert.match(answer, /^HTTP\/1\.1 401 /);
    socket.write('zz\r\n');
    assert.equal(await text(socket), '');
  });

  it('handles HTTP/1.0, a URL as target, an unknown Expect and an unwanted Upgrade', async () => {
    const line = `${auth().join(': ')}\r\n`;
    for (const request of [
      `GET /v1/ping HTTP/1.0\r\n${line}\r\n`,
      `GET http://elsewhere/v1/ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${line}\r\n`,
      `GET /v1/ping HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nConnection: close\r\n${line}\r\n`,
      `GET /v1/ping HTTP/1.1\r\nHost: x\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n${line}\r\n`,
    ]) {
      assert.equal((await sendRaw(running.stack, request)).status, 200, request);
    }
  });
});
