import { z } from 'zod';
import { ErrorBody } from '../../domain/error-body.ts';
import { ERRORS, type ErrorCode } from '../../domain/error-catalogue.ts';
import { idPattern } from '../../domain/ids.ts';
import type { Route } from '../route.ts';

const EVERYWHERE: ErrorCode[] = [
  'validation_failed',
  'invalid_api_key',
  'rate_limited',
  'headers_too_large',
  'internal_error',
  'unavailable',
];
const WITH_BODY: ErrorCode[] = ['body_too_large', 'unsupported_media_type'];

/** The OpenAPI 3.1 document of the routes, from the same declarations that validate requests. */
export function openApiDocument(routes: Route[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method]: operationOf(route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Virtual Card Issuing Partner API',
      version: '1',
      description:
        'Issue and manage USD virtual cards funded from a prepaid balance. All amounts are integer cents.',
    },
    servers: [{ url: '/v1' }],
    security: [{ apiKey: [] }],
    paths,
    components: {
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', description: 'sk_test_… or sk_live_…' } },
      schemas: { Error: jsonSchema(ErrorBody, 'output') },
    },
  };
}

function operationOf(route: Route): object {
  const { summary, description, body, bodyIsOptional = false } = route;
  return {
    summary,
    ...(description && { description }),
    ...(route.mode && { 'x-mode': route.mode }),
    parameters: [...pathParameters(route), ...queryParameters(route), ...headerParameters(route)],
    ...(body && { requestBody: { required: !bodyIsOptional, content: json(jsonSchema(body, 'input')) } }),
    responses: { ...successes(route), ...failures(route) },
  };
}

function pathParameters(route: Route): object[] {
  return [...route.path.matchAll(/:(\w+)Id\b/g)].map(([, of]) => ({
    name: `${of}Id`,
    in: 'path',
    required: true,
    schema: { type: 'string', pattern: idPattern(PREFIXES[of as keyof typeof PREFIXES]) },
  }));
}

/** Of the ids in paths, by what they are the ids of. */
const PREFIXES = { card: 'card', topup: 'topup', deposit: 'dep', event: 'evt' } as const;

function queryParameters(route: Route): object[] {
  const { properties = {}, required = [] } = jsonSchema(route.query, 'input') as {
    properties?: Record<string, { description?: string }>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description && { description }),
    schema,
  }));
}

function headerParameters(route: Route): object[] {
  if (route.idempotencyKey === undefined) return [];
  const required = route.idempotencyKey === 'required';
  // An empty one, or one of spaces alone, which HTTP takes off, counts as missing.
  const schema = required
    ? { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]*[!-~][ -~]*$' }
    : { type: 'string', maxLength: 255, pattern: '^[ -~]*$' };
  return [{ name: 'Idempotency-Key', in: 'header', required, schema }];
}

function successes(route: Route): Record<string, object> {
  return Object.fromEntries(
    Object.entries(route.responses).map(([status, schema]) => [
      status,
      {
        description: status === '202' ? 'Accepted; completes asynchronously' : 'Success',
        ...(status !== '204' && { content: json(jsonSchema(schema, 'output')) }),
      },
    ]),
  );
}

function failures(route: Route): Record<string, object> {
  const ofIdempotency: ErrorCode[] = {
    required: ['idempotency_key_missing', 'idempotency_key_invalid'] as const,
    accepted: ['idempotency_key_invalid'] as const,
    none: [],
  }[route.idempotencyKey ?? 'none'].slice();
  const codes = [...EVERYWHERE, ...(route.body ? WITH_BODY : []), ...ofIdempotency, ...(route.errors ?? [])];
  const byStatus = Map.groupBy(codes, (code) => String(ERRORS[code].status));
  const content = json({ $ref: '#/components/schemas/Error' });
  return Object.fromEntries(
    [...byStatus].map(([status, of]) => [status, { description: of.join(', '), content }]),
  );
}

function json(schema: object): object {
  return { 'application/json': { schema } };
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
}
