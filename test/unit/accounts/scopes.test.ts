import assert from 'node:assert/strict';
import { z } from 'zod';
import type { Scope } from '../../../accounts/scope-rules.ts';
import { createAdmission } from '../../../api/http/admission.ts';
import { guard } from '../../../api/http/guard.ts';
import { declare } from '../../../api/http/route.ts';
import { createStorageBudget } from '../../../api/http/storage-budget.ts';
import { countUnsent } from '../../../api/http/unsent.ts';
import { createUsageBuckets } from '../../../api/http/usage-buckets.ts';
import { openApiDocument } from '../../../api/openapi/document.ts';
import { DECLARATIONS } from '../../../api/routes.ts';

/** The table of docs/partners/keys-and-modes.md: the first line that fits an endpoint names its scope. */
const PROMISED: [endpoints: RegExp, scope: Scope | null][] = [
  [/^(GET \/ping|GET \/products|POST \/quotes)$/, null],
  [/ \/test\//, 'test:write'],
  [/ \/cards\/:cardId\/(secure-details|reveal-links)$/, 'secure_details:read'],
  [/ \/api-keys/, 'api_keys:write'],
  [/ \/workbench-sessions/, 'workbench:write'],
  [/^GET \/requests/, 'requests:read'],
  [/^GET \/(events|webhook-endpoints?)/, 'events:read'],
  [/ \/(events|webhook-endpoints?)/, 'webhooks:write'],
  [/^GET \/(balance|overview|statements|funding|reports\/(balance_transactions|deposits))/, 'balance:read'],
  [/ \/(funding|balance\/alert)/, 'funding:write'],
  [/^GET \/(cards|topups|withdrawals|authorizations|transactions|operations|reports)/, 'cards:read'],
  [/ \/cards/, 'cards:write'],
];

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
    const dependencies = {
      admission: createAdmission(limits),
      authenticate,
      storage: createStorageBudget({ bytesPerDay: 0 }, createUsageBuckets()),
      unsent: countUnsent({ stallMs: 10_000, maxMs: 60_000, maxUnsentBytes: 4 * 1_048_576 }),
    };
    const handle = async () => ({ status: 200, body: {} });
    assert.throws(
      () => guard({ declaration, handle }, dependencies),
      /GET \/things doesn't declare its scope/,
    );
  });

  it('names the scope that the guide promises (docs/partners/keys-and-modes.md)', () => {
    for (const { method, path, scope } of DECLARATIONS) {
      const endpoint = `${method.toUpperCase()} ${path}`;
      const promised = PROMISED.find(([endpoints]) => endpoints.test(endpoint));
      assert.deepEqual([endpoint, scope], [endpoint, promised?.[1]]);
    }
  });

  it("is the operation's security in the OpenAPI document", () => {
    const { paths } = openApiDocument(DECLARATIONS) as {
      paths: Record<string, Record<string, { security: { apiKey: string[] }[] }>>;
    };
    for (const { method, path, scope, alsoScope } of DECLARATIONS) {
      const operation = paths[path.replace(/:(\w+)/g, '{$1}')]?.[method];
      assert.deepEqual(
        operation?.security,
        [{ apiKey: [scope, alsoScope].filter((one) => one != null) }],
        path,
      );
    }
  });
});
