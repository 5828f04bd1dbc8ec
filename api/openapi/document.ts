import { idPattern } from '../../domain/ids.ts';
import { ErrorBody } from '../../requests/error-resource.ts';
import { WebhookEvent } from '../../webhooks/resource.ts';
import type { Declaration } from '../http/route.ts';
import { describeResponses, errorExamples, HEADERS, json } from './responses.ts';
import { codeSamples } from './samples.ts';
import { createSchemas, type Schemas } from './schemas.ts';
import { TAGS } from './tags.ts';
import { describeWebhooks, WEBHOOKS_TAG } from './webhooks.ts';

const DESCRIPTION = `Issue and manage USD virtual cards funded from a prepaid balance.

Every amount is an integer number of US cents. Times are ISO 8601 in UTC. Bodies are JSON, and an unknown field is an error.
Keys that begin with \`sk_test_\` work on test data, keys that begin with \`sk_live_\` on live data.
To retry a request that moves money, send it again with the same \`Idempotency-Key\`.`;

/** The OpenAPI 3.1 document, from the same declarations that validate requests. */
export function openApiDocument(declarations: readonly Declaration[]): object {
  const schemas = createSchemas();
  const paths: Record<string, Record<string, object>> = {};
  const exampleIds = collectExampleIds(declarations);
  for (const route of declarations) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method]: describeOperation(route, schemas, exampleIds) };
  }
  const webhooks = describeWebhooks(schemas);
  schemas.of(WebhookEvent, 'output');
  schemas.of(ErrorBody, 'output');
  return {
    openapi: '3.1.0',
    info: { title: 'Virtual Card Issuing Partner API', version: '1', description: DESCRIPTION },
    externalDocs: { description: 'Partner guide', url: '/guide' },
    servers: [{ url: '/v1' }],
    security: [{ apiKey: [] }],
    tags: [...Object.values(TAGS).map(({ tag, description }) => ({ name: tag, description })), WEBHOOKS_TAG],
    paths,
    webhooks,
    components: {
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description:
            'Your API key: `sk_test_…` or `sk_live_…`. Each operation names the scope that the key needs.',
        },
      },
      schemas: schemas.components(),
      headers: HEADERS,
      examples: errorExamples(),
    },
  };
}

/** An id for each prefix, from the examples of all operations. */
function collectExampleIds(declarations: readonly Declaration[]): Map<string, string> {
  const ids = JSON.stringify(declarations.map(({ examples }) => examples)).matchAll(
    /"(([a-z]+)_[0-9a-z]{26})"/g,
  );
  const byPrefix = new Map<string, string>();
  for (const [, id = '', prefix = ''] of ids) if (!byPrefix.has(prefix)) byPrefix.set(prefix, id);
  return byPrefix;
}

function describeOperation(route: Declaration, schemas: Schemas, exampleIds: Map<string, string>): object {
  const { operationId, summary, description, body, bodyIsOptional = false } = route;
  const inPath = pathParameters(route, exampleIds);
  const path = inPath.reduce((text, { name, example }) => text.replace(`:${name}`, example), route.path);
  return {
    tags: [TAGS[operationId.split('.')[0] as keyof typeof TAGS].tag],
    operationId,
    summary,
    description,
    security: [{ apiKey: [route.scope, route.alsoScope].filter((scope) => scope != null) }],
    ...(route.mode && { 'x-mode': route.mode }),
    parameters: [...inPath, ...queryParameters(route, schemas), ...headerParameters(route)],
    ...(body && {
      requestBody: {
        required: !bodyIsOptional,
        content: json(schemas.of(body, 'input'), { example: route.examples.body ?? {} }),
      },
    }),
    responses: describeResponses(route, schemas),
    'x-codeSamples': codeSamples(
      route,
      path,
      inPath.map(({ example }) => example),
    ),
  };
}

interface PathParameter {
  name: string;
  example: string;
}

function pathParameters(route: Declaration, exampleIds: Map<string, string>): PathParameter[] {
  return [...route.path.matchAll(/:(\w+?)(Id)?\b/g)].map(([, of, isId]) => {
    if (!isId) return { name: `${of}`, in: 'path', required: true, ...MONTH_IN_PATH };
    const [prefix, what] = IDS_IN_PATHS[of as keyof typeof IDS_IN_PATHS];
    const schema = { type: 'string', pattern: idPattern(prefix) };
    const example = exampleIds.get(prefix) ?? `${prefix}_${'0'.repeat(26)}`;
    return {
      name: `${of}Id`,
      in: 'path',
      required: true,
      description: `The id of the ${what}.`,
      schema,
      example,
    };
  });
}

const MONTH_IN_PATH = {
  description: 'The month, as `YYYY-MM`, in UTC.',
  schema: { type: 'string', pattern: '^\\d{4}-(0[1-9]|1[0-2])$' },
  example: '2026-10',
};

const IDS_IN_PATHS = {
  card: ['card', 'card'],
  topup: ['topup', 'top-up'],
  withdrawal: ['wdr', 'withdrawal'],
  authorization: ['auth', 'authorization'],
  deposit: ['dep', 'deposit'],
  operation: ['op', 'operation'],
  event: ['evt', 'event'],
  endpoint: ['we', 'webhook endpoint'],
  replay: ['rpl', 'webhook replay'],
  key: ['key', 'API key'],
  request: ['req', 'request'],
  session: ['wbs', 'workbench session'],
} as const;

function queryParameters(route: Declaration, schemas: Schemas): object[] {
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

function headerParameters(route: Declaration): object[] {
  if (route.idempotencyKey === undefined) return [];
  const required = route.idempotencyKey === 'required';
  // An empty key counts as missing, and so does one of only spaces, which HTTP strips.
  const schema = required
    ? { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]*[!-~][ -~]*$' }
    : { type: 'string', maxLength: 255, pattern: '^[ -~]*$' };
  const description =
    'A string of your own that is unique to this operation. A retry with the same key gets the same response and does ' +
    'nothing twice.';
  return [{ name: 'Idempotency-Key', in: 'header', required, description, schema }];
}
