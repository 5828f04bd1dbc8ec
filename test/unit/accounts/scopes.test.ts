import assert from 'node:assert/strict';
import { z } from 'zod';
import { Scope } from '../../../accounts/scope-rules.ts';
import { createAdmission } from '../../../api/http/admission.ts';
import { guard } from '../../../api/http/guard.ts';
import { declare } from '../../../api/http/route.ts';
import { createStorageBudget } from '../../../api/http/storage-budget.ts';
import { countUnsent } from '../../../api/http/unsent.ts';
import { createUsageBuckets } from '../../../api/http/usage-buckets.ts';
import { openApiDocument } from '../../../api/openapi/document.ts';
import { DECLARATIONS } from '../../../api/routes.ts';

/** Every endpoint under the scope that it needs. */
const PROMISED: Record<Scope | 'none', string[]> = {
  none: ['GET /ping', 'GET /products', 'POST /quotes'],
  'cards:read': [
    'GET /cards',
    'GET /cards/:cardId',
    'GET /topups/:topupId',
    'GET /cards/:cardId/topups',
    'GET /withdrawals/:withdrawalId',
    'GET /cards/:cardId/withdrawals',
    'GET /authorizations',
    'GET /authorizations/:authorizationId',
    'GET /cards/:cardId/authorizations',
    'GET /transactions',
    'GET /cards/:cardId/transactions',
    'GET /cards/:cardId/spending-limits',
    'GET /operations',
    'GET /operations/:operationId',
    'GET /reports/card_transactions',
    'GET /reports/authorizations',
  ],
  'cards:write': [
    'POST /cards',
    'PATCH /cards/:cardId',
    'POST /cards/:cardId/topups',
    'POST /cards/:cardId/withdrawals',
    'POST /cards/:cardId/freeze',
    'POST /cards/:cardId/unfreeze',
    'POST /cards/:cardId/block',
  ],
  'secure_details:read': ['GET /cards/:cardId/secure-details'],
  'balance:read': [
    'GET /balance',
    'GET /overview',
    'GET /balance/transactions',
    'GET /balance/alert',
    'GET /statements/:month',
    'GET /funding/deposits',
    'GET /funding/deposits/:depositId',
    'GET /reports/balance_transactions',
    'GET /reports/deposits',
  ],
  'funding:write': ['POST /funding/deposit-address', 'PUT /balance/alert'],
  'events:read': [
    'GET /events',
    'GET /events/:eventId',
    'GET /webhook-endpoint',
    'GET /webhook-endpoints',
    'GET /webhook-endpoints/:endpointId',
    'GET /webhook-endpoints/:endpointId/replays/:replayId',
  ],
  'webhooks:write': [
    'PUT /webhook-endpoint',
    'DELETE /webhook-endpoint',
    'POST /webhook-endpoint/rotate-secret',
    'POST /webhook-endpoint/test',
    'POST /webhook-endpoints',
    'PATCH /webhook-endpoints/:endpointId',
    'DELETE /webhook-endpoints/:endpointId',
    'POST /webhook-endpoints/:endpointId/rotate-secret',
    'POST /webhook-endpoints/:endpointId/test',
    'POST /webhook-endpoints/:endpointId/replay',
    'POST /events/:eventId/resend',
  ],
  'test:write': [
    'POST /test/credit',
    'POST /test/cards/:cardId/simulate-transaction',
    'POST /test/cards/:cardId/authorizations',
    'POST /test/cards/:cardId/force-capture',
    'POST /test/authorizations/:authorizationId/increment',
    'POST /test/authorizations/:authorizationId/capture',
    'POST /test/authorizations/:authorizationId/reverse',
    'POST /test/authorizations/:authorizationId/expire',
    'POST /test/deposits',
    'POST /test/deposits/:depositId/resolve',
    'GET /test/clock',
    'POST /test/clock/advance',
  ],
  'api_keys:write': [
    'GET /api-keys',
    'POST /api-keys',
    'GET /api-keys/:keyId',
    'DELETE /api-keys/:keyId',
    'POST /api-keys/:keyId/rotate',
  ],
  'workbench:write': [
    'POST /workbench-sessions',
    'GET /workbench-sessions',
    'DELETE /workbench-sessions/:sessionId',
  ],
  'requests:read': ['GET /requests', 'GET /requests/:requestId'],
};

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
    const named = DECLARATIONS.map(
      ({ method, path, scope }) => `${scope ?? 'none'}: ${method.toUpperCase()} ${path}`,
    );
    const promised = Object.entries(PROMISED).flatMap(([scope, endpoints]) =>
      endpoints.map((endpoint) => `${scope}: ${endpoint}`),
    );
    assert.deepEqual(named.sort(), promised.sort());
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
    const named = new Set(DECLARATIONS.flatMap(({ scope }) => (scope === null ? [] : [scope])));
    for (const scope of named) assert.ok(Scope.options.includes(scope));
  });
});
