import { ErrorBody } from '../../domain/error-body.ts';
import { ERRORS, type ErrorCode } from '../../domain/error-catalogue.ts';
import { EVENT_SUMMARIES, WEBHOOK_EVENTS, WebhookEvent } from '../../domain/event-resource.ts';
import { idPattern } from '../../domain/ids.ts';
import type { Route } from '../route.ts';
import { REQUEST_ID, WEBHOOK_EVENTS as SENT } from './examples.ts';
import { RESOURCES } from './resources.ts';
import { createSchemas, type Schemas } from './schemas.ts';

const EVERYWHERE: ErrorCode[] = [
  'validation_failed',
  'invalid_api_key',
  'rate_limited',
  'headers_too_large',
  'internal_error',
  'unavailable',
];
const WITH_BODY: ErrorCode[] = ['body_too_large', 'unsupported_media_type'];

const DESCRIPTION = `Issue and manage USD virtual cards funded from a prepaid balance.

Every amount is an integer number of US cents. Times are ISO 8601 in UTC. Bodies are JSON, and an unknown field is an error.
Keys that begin with \`sk_test_\` work on test data, keys that begin with \`sk_live_\` on live data.
To retry a request that moves money, send it again with the same \`Idempotency-Key\`.`;

/** The OpenAPI 3.1 document of the routes, from the same declarations that validate requests. */
export function openApiDocument(routes: Route[]): object {
  const schemas = createSchemas();
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method]: operationOf(route, schemas) };
  }
  const webhooks = webhooksOf(schemas);
  schemas.of(WebhookEvent, 'output');
  schemas.of(ErrorBody, 'output');
  return {
    openapi: '3.1.0',
    info: { title: 'Virtual Card Issuing Partner API', version: '1', description: DESCRIPTION },
    servers: [{ url: '/v1' }],
    security: [{ apiKey: [] }],
    tags: [
      ...Object.values(RESOURCES).map(({ tag, description }) => ({ name: tag, description })),
      { name: WEBHOOKS_TAG, description: 'What we send to your webhook endpoint.' },
    ],
    paths,
    webhooks,
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'Your API key: `sk_test_…` or `sk_live_…`.' },
      },
      schemas: schemas.components(),
      headers: HEADERS,
      examples: errorExamples(),
    },
  };
}

function operationOf(route: Route, schemas: Schemas): object {
  const { operationId, summary, description, body, bodyIsOptional = false } = route;
  return {
    tags: [RESOURCES[operationId.split('.')[0] as keyof typeof RESOURCES].tag],
    operationId,
    summary,
    ...(description && { description }),
    ...(route.mode && { 'x-mode': route.mode }),
    parameters: [...pathParameters(route), ...queryParameters(route, schemas), ...headerParameters(route)],
    ...(body && {
      requestBody: {
        required: !bodyIsOptional,
        content: json(schemas.of(body, 'input'), { example: route.examples.body ?? {} }),
      },
    }),
    responses: { ...successes(route, schemas), ...failures(route) },
  };
}

function pathParameters(route: Route): object[] {
  return [...route.path.matchAll(/:(\w+)Id\b/g)].map(([, of]) => {
    const [prefix, what] = IDS_IN_PATHS[of as keyof typeof IDS_IN_PATHS];
    const schema = { type: 'string', pattern: idPattern(prefix) };
    return { name: `${of}Id`, in: 'path', required: true, description: `The id of the ${what}.`, schema };
  });
}

const IDS_IN_PATHS = {
  card: ['card', 'card'],
  topup: ['topup', 'top-up'],
  deposit: ['dep', 'deposit'],
  event: ['evt', 'event'],
} as const;

function queryParameters(route: Route, schemas: Schemas): object[] {
  const { properties = {}, required = [] } = schemas.of(route.query, 'input') as {
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
  const description =
    'A string of your own that is unique to this operation. A retry with the same key gets the same answer and does ' +
    'nothing twice.';
  return [{ name: 'Idempotency-Key', in: 'header', required, description, schema }];
}

function successes(route: Route, schemas: Schemas): Record<string, object> {
  return Object.fromEntries(
    Object.entries(route.responses).map(([status, schema]) => [
      status,
      {
        description: SUCCESSES[status],
        headers: headersOf(route, Number(status)),
        ...(status !== '204' && {
          content: json(schemas.of(schema, 'output'), { example: route.examples[Number(status)] }),
        }),
      },
    ]),
  );
}

const SUCCESSES: Record<string, string> = {
  200: 'Done.',
  201: 'Created.',
  202: 'Accepted. It completes asynchronously.',
  204: 'Done. There is no body.',
};

function failures(route: Route): Record<string, object> {
  const ofIdempotency: ErrorCode[] = {
    required: ['idempotency_key_missing', 'idempotency_key_invalid'] as const,
    accepted: ['idempotency_key_invalid'] as const,
    none: [],
  }[route.idempotencyKey ?? 'none'].slice();
  const codes = [...EVERYWHERE, ...(route.body ? WITH_BODY : []), ...ofIdempotency, ...(route.errors ?? [])];
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, of]) => [
      status,
      {
        description: of.map((code) => `- \`${code}\`: ${ERRORS[code].message}`).join('\n'),
        headers: headersOf(route, status),
        content: json(
          { $ref: '#/components/schemas/Error' },
          {
            examples: Object.fromEntries(of.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
          },
        ),
      },
    ]),
  );
}

const HEADERS = {
  'Request-Id': {
    description: 'The id of this request. Quote it when you ask us about it.',
    schema: { type: 'string', pattern: idPattern('req') },
    example: REQUEST_ID,
  },
  'Idempotent-Replayed': {
    description: 'Present if this is the stored answer of an earlier request with the same Idempotency-Key.',
    schema: { type: 'string', const: 'true' },
    example: 'true',
  },
  'Retry-After': {
    description: 'After how many seconds to retry. Always present with 429, sometimes with 503.',
    schema: { type: 'integer', minimum: 1 },
    example: 1,
  },
};

/** Answers that are found before the key is looked at, or not kept, are never replayed (decisions.md, "Idempotency"). */
const NEVER_REPLAYED = [400, 401, 403, 413, 415, 429, 431, 500, 503];

function headersOf({ idempotencyKey }: Route, status: number): object {
  const names: (keyof typeof HEADERS)[] = ['Request-Id'];
  if (idempotencyKey !== undefined && !NEVER_REPLAYED.includes(status)) names.push('Idempotent-Replayed');
  if (status === 429 || status === 503) names.push('Retry-After');
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** One of each code, as the service answers it. */
function errorExamples(): Record<string, object> {
  return Object.fromEntries(
    Object.entries(ERRORS).map(([code, { type, message }]) => {
      const wrong = WRONG[code as keyof typeof WRONG];
      const error = {
        ...{ type, code, message: wrong?.message ?? message },
        ...(wrong && { param: wrong.path, issues: [wrong] }),
        request_id: REQUEST_ID,
      };
      return [code, { summary: message, value: { error } }];
    }),
  );
}

const KEY_INVALID = 'Idempotency-Key must be sent once, with 1 to 255 printable ASCII characters';
const WRONG = {
  validation_failed: { path: 'amount', message: 'amount is required' },
  idempotency_key_missing: { path: 'Idempotency-Key', message: KEY_INVALID },
  idempotency_key_invalid: { path: 'Idempotency-Key', message: KEY_INVALID },
};

const WEBHOOKS_TAG = 'Webhooks';

function webhooksOf(schemas: Schemas): Record<string, object> {
  return Object.fromEntries(
    WEBHOOK_EVENTS.map(([type, schema]) => [
      type,
      {
        post: {
          tags: [WEBHOOKS_TAG],
          operationId: `webhooks.${type.replace(/[._](\w)/g, (_, letter: string) => letter.toUpperCase())}`,
          summary: EVENT_SUMMARIES[type],
          description:
            'Verify the signature before you trust the body, and handle each `id` once: an event can come twice, and ' +
            'order is not guaranteed.',
          security: [],
          parameters: SIGNATURE_HEADERS,
          requestBody: {
            required: true,
            content: json(schemas.of(schema, 'output'), {
              example: SENT.find((event) => event.type === type),
            }),
          },
          responses: {
            '2XX': { description: 'You have received it. Answer within 10 seconds.' },
            410: { description: 'Send nothing more: the endpoint is disabled until you set it again.' },
            default: {
              description: 'Anything else is a failure. It is retried after 30 s, 5 min, 30 min and 2 h.',
            },
          },
        },
      },
    ]),
  );
}

const SIGNATURE_HEADERS = [
  ['X-Service-Event-Id', "The event's id.", idPattern('evt')],
  ['X-Service-Timestamp', 'When this attempt was made, in milliseconds since the epoch.', '^[0-9]{1,15}$'],
  [
    'X-Service-Signature',
    'The lowercase hex SHA-256 of the timestamp, the raw body and your webhook secret, one after the other.',
    '^[0-9a-f]{64}$',
  ],
].map(([name, description, pattern]) => ({
  ...{ name, in: 'header', required: true, description },
  schema: { type: 'string', pattern },
}));

function json(schema: object, examples: { example?: unknown; examples?: object }): object {
  return { 'application/json': { schema, ...examples } };
}
