import assert from 'node:assert/strict';
import { Validator } from '@seriousme/openapi-schema-validator';
import { DECLARATIONS } from '../../api/routes.ts';
import { CreateCardRequest } from '../../cards/resource.ts';
import { ERRORS } from '../../domain/error-catalogue.ts';
import { inlined } from '../support/api/fuzz/document.ts';
import { column } from '../support/column.ts';
import { sharedStack } from '../support/shared-stack.ts';

describe('the reference', () => {
  let origin: string;
  before(async () => {
    const { config } = await sharedStack('api');
    origin = `http://${config.host}:${config.port}`;
  });

  // biome-ignore lint/suspicious/noExplicitAny: the document's shape is what is under test.
  const document = async (): Promise<any> => (await fetch(`${origin}/openapi.json`)).json();

  it('serves a valid OpenAPI 3.1 document at GET /openapi.json', async () => {
    const validator = new Validator();
    const result = await validator.validate(await document());
    assert.deepEqual(result.errors ?? [], []);
    assert.equal(result.valid, true);
    assert.equal(validator.version, '3.1');
  });

  it('describes every route with its success, body, parameters and errors', async () => {
    const { paths, components } = await document();
    const documented = Object.entries<object>(paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method} ${path}`),
    );
    const declared = DECLARATIONS.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
    assert.deepEqual(documented.sort(), declared.sort());

    const { parameters, requestBody, responses } = paths['/cards'].post;
    assert.deepEqual(column(parameters, 'name'), ['Idempotency-Key']);
    const { properties, required } = inlined(requestBody.content['application/json'].schema, components);
    assert.deepEqual(Object.keys(properties), Object.keys(CreateCardRequest.shape));
    assert.deepEqual(required, ['amount', 'external_ref']);
    const expected = '201 202 400 401 402 403 409 413 415 422 429 431 500 503';
    assert.equal(Object.keys(responses).sort().join(' '), expected);
    assert.match(responses[402].description, /insufficient_funds.*provider_declined/s);
  });

  it('names only errors that are in the catalogue', async () => {
    const { paths } = await document();
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    const operations = Object.values<object>(paths).flatMap((of) => Object.values<any>(of));
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    const responses = operations.flatMap((operation) => Object.entries<any>(operation.responses));
    for (const [status, { description }] of responses) {
      for (const line of Number(status) < 400 ? [] : description.split('\n')) {
        const [, code = '', message] = /^- `(\w+)`: (.+)$/.exec(line) ?? [];
        const { status: expected, message: said } = ERRORS[code as keyof typeof ERRORS] ?? {};
        assert.deepEqual([status, message], [String(expected), said], line);
      }
    }
  });

  it('loads GET /docs and all that it needs from this process alone', async () => {
    const page = await fetch(`${origin}/docs`);
    assert.equal(page.status, 200);
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
    const policy = page.headers.get('content-security-policy') ?? '';
    assert.match(policy, /default-src 'none'; script-src 'self'; connect-src 'self'/);
    assert.doesNotMatch(policy, /https?:|\*/);
    const html = await page.text();
    const assets = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? '');
    assert.deepEqual(assets.sort(), ['/docs/scalar.js', '/docs/start.js', 'data:,']);
    for (const path of assets.filter((one) => one.startsWith('/'))) {
      const asset = await fetch(origin + path);
      assert.equal(asset.status, 200, path);
      assert.match(asset.headers.get('content-type') ?? '', /^text\/(javascript|css)/);
      assert.ok((await asset.text()).length > 50, path);
    }
    assert.match(await (await fetch(`${origin}/docs/start.js`)).text(), /'\/openapi\.json'/);
  });

  it('answers 404 for an unknown asset', async () => {
    for (const path of ['/docs/nothing.js', '/docs/..%2f..%2fpackage.json', '/docs/scalar.js/x']) {
      assert.equal((await fetch(origin + path)).status, 404, path);
    }
  });
});
