import { sql } from 'kysely';
import { z } from 'zod';
import { askingKey } from '../api/http/asking-key.ts';
import { declareList, idRange, type PageValues, pageOf, pageRows, pageValues } from '../api/http/list.ts';
import { type PageRequest, presentList } from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { ApiError } from '../domain/api-error.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { SHOWN_KEY } from '../platform/db/columns.ts';
import { type Reader, tenantStatement } from '../platform/db/sql.ts';
import type { CommandContext } from '../requests/command-context.ts';
import {
  ApiKeyRequest,
  ApiKeyResource,
  type ApiKeyRow,
  presentApiKey,
  RotateApiKeyRequest,
} from './api-key-resource.ts';
import { API_KEY, API_KEY_REQUEST, NEW_API_KEY } from './examples.ts';
import { createOwnKey, revokeOwnKey, rotateOwnKey } from './own-keys.ts';

const createApiKey = declare({
  method: 'post',
  path: '/api-keys',
  scope: 'api_keys:write',
  operationId: 'apiKeys.create',
  summary: 'Create an API key',
  description:
    'Makes a key for your account, in the mode of the key that you send, which can do no more than that key. Only this response has the `key` itself, so store it. ' +
    'An Idempotency-Key is ignored: if the response is lost, delete the key that `GET /api-keys` shows, and make another. You can ' +
    'have 50 active keys in each mode.',
  body: ApiKeyRequest,
  responses: { 201: ApiKeyResource },
  examples: { body: API_KEY_REQUEST, 201: NEW_API_KEY },
  errors: ['limit_exceeded'],
});

const listApiKeys = declareList({
  path: '/api-keys',
  scope: 'api_keys:write',
  operationId: 'apiKeys.list',
  summary: 'List API keys',
  description:
    "Your account's keys in this mode, newest first, with those that have expired or were revoked.",
  idPrefix: 'key',
  item: ApiKeyResource,
  example: API_KEY,
});

const getApiKey = declare({
  method: 'get',
  path: '/api-keys/:keyId',
  scope: 'api_keys:write',
  operationId: 'apiKeys.get',
  summary: 'Retrieve an API key',
  description: 'What the key may do, and when it was last used.',
  responses: { 200: ApiKeyResource },
  examples: { 200: API_KEY },
  errors: ['api_key_not_found'],
});

const revokeApiKey = declare({
  method: 'delete',
  path: '/api-keys/:keyId',
  scope: 'api_keys:write',
  operationId: 'apiKeys.revoke',
  summary: 'Revoke an API key',
  description:
    'The key stops working everywhere within 5 seconds, for good, and stays in the list as `revoked`. You can revoke the key that you ' +
    'send, too. If none of your keys has `api_keys:write` any more, ask us for one.',
  responses: { 204: z.null() },
  examples: {},
  errors: ['api_key_not_found'],
});

const rotateApiKey = declare({
  method: 'post',
  path: '/api-keys/:keyId/rotate',
  scope: 'api_keys:write',
  operationId: 'apiKeys.rotate',
  summary: 'Rotate an API key',
  description:
    'Makes a key with the same `name`, `scopes`, `ip_allowlist` and `expires_at`. Both work until the overlap is over: then ' +
    'the old one expires. Only this response has the new `key` itself. An Idempotency-Key is ignored.',
  body: RotateApiKeyRequest,
  bodyIsOptional: true,
  responses: { 201: ApiKeyResource },
  examples: { body: { overlap_seconds: 3_600 }, 201: NEW_API_KEY },
  errors: ['api_key_not_found', 'invalid_state', 'limit_exceeded'],
});

export const apiKeys = resource(
  { createApiKey, listApiKeys, getApiKey, revokeApiKey, rotateApiKey },
  (dependencies: CommandContext) => ({
    async createApiKey(input) {
      const { row, key } = await createOwnKey(dependencies, askingKey(input), input.body);
      return { status: 201, body: presentApiKey(row, key) };
    },

    async listApiKeys({ caller, query }) {
      // From the primary: a key that was just made or revoked is shown so.
      const page = await readApiKeyPage(dependencies.orm.em.fork(), caller, query);
      return { status: 200, body: presentList(page, query.limit) };
    },

    async getApiKey({ caller, params: { keyId = '' } }) {
      const [row] = isId('key', keyId) ? await one(dependencies.orm.em.fork(), caller, { keyId }) : [];
      if (row === undefined) throw new ApiError('api_key_not_found');
      return { status: 200, body: presentApiKey(row) };
    },

    async revokeApiKey(input) {
      await revokeOwnKey(dependencies, askingKey(input), input.params.keyId ?? '');
      return { status: 204, body: null };
    },

    async rotateApiKey(input) {
      const { row, key } = await rotateOwnKey(
        dependencies,
        askingKey(input),
        input.params.keyId ?? '',
        input.body,
      );
      return { status: 201, body: presentApiKey(row, key) };
    },
  }),
);

const one = tenantStatement(
  (_, { partnerId, mode, keyId }: Tenant & { keyId: string }) => sql<ApiKeyRow>`
  SELECT ${SHOWN_KEY} FROM api_key k WHERE k.id = ${keyId} AND k.partner_id = ${partnerId}
    AND k.mode = ${mode}`,
);

/**
 * Up to `limit` + 1 keys, newest first.
 * @throws ApiError `validation_failed` if `starting_after` is not a key of the tenant
 */
async function readApiKeyPage(em: Reader, tenant: Tenant, page: PageRequest): Promise<ApiKeyResource[]> {
  const rows = await selectPage(em, tenant, pageValues(page));
  return pageRows<ApiKeyRow>(rows, 'an API key').map((row) => presentApiKey(row));
}

const selectPage = tenantStatement((db, values: Tenant & PageValues) => {
  const { partnerId, mode, limit } = values;
  const { from, before } = idRange('key', values);
  const newest = sql<ApiKeyRow>`(SELECT ${SHOWN_KEY} FROM api_key k
    WHERE k.partner_id = ${partnerId} AND k.mode = ${mode} AND k.id >= ${from} AND k.id < ${before}
    ORDER BY k.id DESC LIMIT ${limit})`;
  return pageOf(db, values, 'api_key', newest);
});
