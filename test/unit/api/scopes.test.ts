import assert from 'node:assert/strict';
import { z } from 'zod';
import { createAdmission } from '../../../api/http/admission.ts';
import { guard } from '../../../api/http/guard.ts';
import { declare } from '../../../api/http/route.ts';
import { openApiDocument } from '../../../api/openapi/document.ts';
import { DECLARATIONS } from '../../../api/routes.ts';
import { Scope } from '../../../domain/scope.ts';

describe("a route's declaration", () => {
  it('names its scope, or the process does not start', () => {
    const declaration = declare({
      method: 'get',
      path: '/things',
      // As if it had been left out.
      scope: undefined as unknown as null,
      operationId: 'cards.things',
      summary: 'Things',
      description: 'Things.',
      query: z.strictObject({}),
      responses: { 200: z.object({}) },
      examples: {},
    });
    const limits = { accountConcurrency: 1, maxWaitMs: 1, maxTurnMs: 1, maxStartMs: 1 };
    const authenticate = () => Promise.reject(new Error('not asked'));
    const dependencies = { admission: createAdmission(limits), authenticate };
    const handle = async () => ({ status: 200, body: {} });
    assert.throws(
      () => guard({ declaration, handle }, dependencies),
      /GET \/things doesn't declare its scope/,
    );
  });

  it('needs no scope only for /ping, /products and /quotes', () => {
    const open = DECLARATIONS.filter(({ scope }) => scope === null).map(({ path }) => path);
    assert.deepEqual(open, ['/ping', '/products', '/quotes']);
  });

  it('names a scope that its path and method call for', () => {
    for (const { method, path, scope } of DECLARATIONS) {
      if (scope === null) continue;
      const reads = method === 'get';
      const [, group = ''] = path.split('/');
      assert.equal(scope === 'test:write', group === 'test', path);
      assert.equal(scope === 'api_keys:write', group === 'api-keys', path);
      assert.equal(scope === 'secure_details:read', path.endsWith('/secure-details'), path);
      if (['test', 'api-keys'].includes(group)) continue;
      assert.equal(scope.endsWith(':read'), reads, `${method} ${path}`);
    }
  });

  it("is the operation's security in the OpenAPI document", () => {
    const { paths } = openApiDocument(DECLARATIONS) as {
      paths: Record<string, Record<string, { security: { apiKey: string[] }[] }>>;
    };
    for (const { method, path, scope } of DECLARATIONS) {
      const operation = paths[path.replace(/:(\w+)/g, '{$1}')]?.[method];
      assert.deepEqual(operation?.security, [{ apiKey: scope === null ? [] : [scope] }], path);
    }
    const named = new Set(DECLARATIONS.flatMap(({ scope }) => (scope === null ? [] : [scope])));
    for (const scope of named) assert.ok(Scope.options.includes(scope));
  });
});
