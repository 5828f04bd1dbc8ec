import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { startCodec } from '../../../../operator/codec/server.ts';
import type { CodecConfig } from '../../../../platform/config/codec.ts';
import type { ListeningServer } from '../../../../platform/process/listen.ts';
import { createLogger } from '../../../../platform/process/logger.ts';
import { EncryptionCodec } from '../../../../platform/temporal/encryption-codec.ts';
import { type LoopbackServer, listenOnLoopback } from '../../../support/sockets.ts';

const KEY = { id: 'k1', secret: randomBytes(32) };
// The holders of both decrypt until the old one is removed.
const [TOKEN, OLD_TOKEN] = [1, 2].map(() => randomBytes(24).toString('base64url')) as [string, string];
const UI = 'http://127.0.0.1:8233';
const VALUE = { claimId: 'claim_01' };

interface JsonPayload {
  metadata: Record<string, string>;
  data: string;
}

const json = ({ metadata, data }: Payload): JsonPayload => ({
  metadata: Object.fromEntries(
    Object.entries(metadata ?? {}).map(([name, value]) => [name, Buffer.from(value).toString('base64')]),
  ),
  data: Buffer.from(data ?? []).toString('base64'),
});
const plain = json(defaultPayloadConverter.toPayload(VALUE));
const sealedWith = (key: typeof KEY) =>
  json(new EncryptionCodec([key]).seal(defaultPayloadConverter.toPayload(VALUE)));

describe('the codec endpoint', () => {
  let endpoint: ListeningServer;
  let issuer: LoopbackServer;
  let issue: (claims?: { audience?: string; expires?: string }) => Promise<string>;
  const logged: string[] = [];

  before(async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    const keys = [{ ...(await exportJWK(publicKey)), kid: '1', alg: 'ES256' }];
    issuer = await listenOnLoopback((_, res) => res.end(JSON.stringify({ keys })));
    issue = ({ audience = 'temporal-ui', expires = '5m' } = {}) =>
      new SignJWT({})
        .setProtectedHeader({ alg: 'ES256', kid: '1' })
        .setIssuer('https://login.example')
        .setAudience(audience)
        .setSubject('operator@example')
        .setExpirationTime(expires)
        .sign(privateKey);
    const config: CodecConfig = {
      ...{ host: '127.0.0.1', port: 0, keys: [KEY], tokens: [TOKEN, OLD_TOKEN], allowedOrigins: [UI] },
      issuer: { jwksUrl: `${issuer.url}/jwks`, issuer: 'https://login.example', audience: 'temporal-ui' },
      ...{ namespace: 'cards', logLevel: 'info' },
    };
    const logger = createLogger('codec', 'info', { write: (line: string) => logged.push(line) });
    endpoint = await startCodec(config, logger);
  });
  after(async () => {
    await endpoint.stop();
    await issuer.close();
  });

  const ask = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${endpoint.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-namespace': 'cards', origin: UI, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const authorization = `Bearer ${TOKEN}`;

  it('decrypts for the holder of a token, in a header as the UI sends it or in the path as the CLI does', async () => {
    for (const [path, headers] of [
      ['/decode?preserveStorageRefs=true', { authorization }],
      [`/${TOKEN}/decode`, {}],
      ['/decode', { authorization: `Bearer ${OLD_TOKEN}` }],
    ] as const) {
      const response = await ask(path, { payloads: [sealedWith(KEY), plain] }, headers);
      assert.equal(response.status, 200);
      assert.equal(response.headers.get('access-control-allow-origin'), UI);
      assert.deepEqual(await response.json(), { payloads: [plain, plain] });
    }
  });

  it('encrypts what the UI sends, so that a worker can read it', async () => {
    const response = await ask('/encode', { payloads: [plain] }, { authorization });
    const { payloads } = (await response.json()) as { payloads: JsonPayload[] };
    assert.equal(Buffer.from(payloads[0]?.metadata.encoding ?? '', 'base64').toString(), 'binary/encrypted');
    const again = await ask('/decode', { payloads }, { authorization });
    assert.deepEqual(await again.json(), { payloads: [plain] });
  });

  it('accepts the access token that the UI passes on, and no other', async () => {
    const bearer = async (token: string) =>
      (await ask('/decode', { payloads: [sealedWith(KEY)] }, { authorization: `Bearer ${token}` })).status;
    assert.equal(await bearer(await issue()), 200);
    assert.equal(await bearer(await issue({ audience: 'another-app' })), 401);
    assert.equal(await bearer(await issue({ expires: '-1m' })), 401);
    const [header, claims] = (await issue()).split('.');
    assert.equal(await bearer(`${header}.${claims}.AAAA`), 401);
  });

  it('answers 401 without a token, or with a wrong one', async () => {
    const body = { payloads: [sealedWith(KEY)] };
    assert.equal((await ask('/decode', body)).status, 401);
    assert.equal((await ask('/encode', body)).status, 401);
    assert.equal((await ask('/decode', body, { authorization: `Bearer ${TOKEN}x` })).status, 401);
    assert.equal((await ask(`/${TOKEN.slice(1)}/decode`, body, { authorization })).status, 401);
  });

  it('lets only the configured UI’s pages read its answers', async () => {
    const preflight = (origin: string) =>
      fetch(`${endpoint.url}/decode`, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST' },
      });
    const { status, headers } = await preflight(UI);
    assert.equal(status, 204);
    assert.match(
      headers.get('access-control-allow-headers') ?? '',
      /Authorization.*Content-Type.*X-Namespace/,
    );
    assert.equal((await preflight('https://evil.example')).headers.get('access-control-allow-origin'), null);
  });

  it('takes a body without payloads, which Temporal’s command line sends for a query without an input', async () => {
    const response = await ask('/encode', {}, { authorization });
    assert.deepEqual(await response.json(), { payloads: [] });
  });

  it('refuses another namespace, and a body that is not Temporal’s', async () => {
    const body = { payloads: [plain] };
    assert.equal((await ask('/decode', body, { authorization, 'x-namespace': 'other' })).status, 403);
    for (const wrong of ['', '{', '[]', '{"payloads":[{"data":"%"}]}']) {
      assert.equal((await ask('/decode', wrong, { authorization })).status, 400, wrong);
    }
  });

  it('returns payloads unchanged that it has no key for, and decrypts the rest', async () => {
    const foreign = sealedWith({ id: 'gone', secret: randomBytes(32) });
    const response = await ask('/decode', { payloads: [foreign, sealedWith(KEY)] }, { authorization });
    assert.deepEqual(await response.json(), { payloads: [foreign, plain] });
    assert.match(logged.join('\n'), /CODEC_KEYS has no key \\"gone\\"/);
  });

  it('answers 413 for more than 8 MiB, and 401 whatever the size is without a token', async () => {
    const large = 'x'.repeat(9 * 1024 * 1024);
    const { status } = await ask('/decode', large, { authorization });
    assert.equal(status, 413);
    assert.equal((await ask('/decode', large)).status, 401);
  });

  it('logs who asked for how many payloads, and neither a token nor what was decrypted', () => {
    const lines = logged.join('\n');
    assert.match(lines, /"what":"decode","status":200,"by":"operator@example","payloads":1/);
    assert.ok(!lines.includes(TOKEN));
    assert.ok(!lines.includes(VALUE.claimId));
  });
});
