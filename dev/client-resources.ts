/** What the client's methods are made from, in an OpenAPI document. */
export interface Document {
  components: { schemas: Record<string, object> };
  paths: Record<string, Record<string, OperationObject>>;
}

interface OperationObject {
  operationId: string;
  summary: string;
  description?: string;
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: object }[];
  requestBody?: { required?: boolean; content: Content };
  responses: Record<string, { content?: Content }>;
  'x-mode'?: string;
}

type Content = Record<string, { schema: { $ref: string } }>;

/**
 * A POST or DELETE without an Idempotency-Key is only retried after 429, since doing it twice differs from
 * doing it once. These are the exceptions.
 */
const ONCE: Record<string, boolean> = {
  'quotes.create': false,
  'apiKeys.revoke': false,
  'cards.getSecureDetails': true,
  // The first response has the secret.
  'webhookEndpoint.set': true,
};

/** What `waitUntilSettled` waits for the end of. */
const PENDING_STATUS: Record<string, string> = {
  cards: 'funding_pending',
  topups: 'pending',
  withdrawals: 'pending',
};

/**
 * @returns a class for each group of operation ids, with a method for each operation, `Resources`, which has
 * them all, and the types of events
 */
export function writeResources({ components, paths }: Document): string {
  const { enum: eventTypes = [] } = components.schemas.EventType as { enum?: string[] };
  const groups = new Map<string, string[]>();
  for (const [url, operations] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const [group = ''] = operation.operationId.split('.');
      const methods = groups.get(group) ?? [];
      groups.set(group, [...methods, writeMethod(method.toUpperCase(), url, operation)]);
    }
  }
  for (const [group, status] of Object.entries(PENDING_STATUS))
    groups.get(group)?.push(writeWait(group, status));
  const names = [...groups.keys()];
  return [
    `// Made from the API's OpenAPI document by "npm run client". Don't edit it.`,
    `import type { ApiResponse, HttpClient, IdempotentRequestOptions, RequestOptions } from '../http.ts';`,
    `import type { List } from '../list.ts';`,
    `import { OperationGroup } from '../operation-group.ts';`,
    `import type { WaitOptions } from '../settled.ts';`,
    `import type * as api from './types.gen.ts';`,
    ...names.map(
      (name) =>
        `\nexport class ${capitalize(name)} extends OperationGroup {\n${groups.get(name)?.join('\n\n')}\n}`,
    ),
    '\nexport abstract class Resources {',
    ...names.map((name) => `  readonly ${name}: ${capitalize(name)};`),
    '\n  constructor(http: HttpClient) {',
    ...names.map((name) => `    this.${name} = new ${capitalize(name)}(http);`),
    '  }\n}\n',
    '/** Every type of event. */',
    'export const EVENT_TYPES: readonly api.EventType[] = [',
    ...eventTypes.map((type) => `  '${type}',`),
    '];\n',
  ].join('\n');
}

/** @returns a schema of each operation's query, such as `CardsListQuery` */
export function querySchemas({ paths }: Document): Record<string, object> {
  const queries = Object.values(paths)
    .flatMap((operations) => Object.values(operations))
    .map(({ operationId, parameters = [] }) => {
      const taken = parameters.filter((parameter) => parameter.in === 'query');
      return { name: queryName(operationId), taken };
    })
    .filter(({ taken }) => taken.length > 0);
  return Object.fromEntries(
    queries.map(({ name, taken }) => [
      name,
      {
        type: 'object',
        properties: Object.fromEntries(
          taken.map(({ name, description, schema }) => [name, { description, ...schema }]),
        ),
        required: taken.filter(({ required }) => required === true).map(({ name }) => name),
        additionalProperties: false,
      },
    ]),
  );
}

const queryName = (operationId: string) => `${operationId.split('.').map(capitalize).join('')}Query`;

/** Ids of the path come first, then the body or the query, then the options. */
function writeMethod(method: string, url: string, operation: OperationObject): string {
  const { operationId, parameters = [], requestBody, responses } = operation;
  const [group = '', name = ''] = operationId.split('.');
  const [, success] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? [];
  const [mediaType, result] = schemaOf(success?.content);
  const item = /^(\w+)List$/.exec(result)?.[1];
  const ids = parameters.filter((parameter) => parameter.in === 'path').map((parameter) => parameter.name);
  const hasQuery = parameters.some((parameter) => parameter.in === 'query');
  const keyed = parameters.some((parameter) => parameter.name === 'Idempotency-Key');
  const once = ONCE[operationId] ?? (!keyed && (method === 'POST' || method === 'DELETE'));
  const [, sent] = schemaOf(requestBody?.content);
  const hasBody = sent !== '' && sent !== 'NoFields';

  const taken = ids.map((id) => `${id}: string`);
  if (hasBody) taken.push(`body: api.${sent}${requestBody?.required === true ? '' : ' = {}'}`);
  if (hasQuery) taken.push(`query: api.${queryName(operationId)}${item === undefined ? '' : ' = {}'}`);
  taken.push(`options?: ${keyed ? 'IdempotentRequestOptions' : 'RequestOptions'}`);

  const request = [`method: '${method}'`, `url: '${url}'`];
  if (ids.length > 0) request.push(`path: { ${ids.join(', ')} }`);
  if (hasBody) request.push('body');
  if (hasQuery) request.push('query');
  if (keyed) request.push('keyed: true');
  if (once) request.push('once: true');

  let [call, returned] = [`send<api.${result}>`, `Promise<ApiResponse<api.${result}>>`];
  if (item !== undefined) [call, returned] = [`pages<api.${item}>`, `List<api.${item}>`];
  else if (mediaType === 'text/csv') [call, returned] = ['download', 'Promise<ReadableStream<Uint8Array>>'];
  else if (result === '') [call, returned] = ['sendForNothing', 'Promise<void>'];

  const comment = [`${operation.summary}. ${operation.description ?? ''}`.trim()];
  if (operation['x-mode'] !== undefined) comment.push(`A ${operation['x-mode']} key only.`);
  if (name === 'create' && group in PENDING_STATUS) comment.push('Or use {@link waitUntilSettled}.');
  if (mediaType === 'text/csv') comment.push('Read it with `for await (const part of await …)`.');
  if (once)
    comment.push('The client only retries it after 429, since doing it twice differs from doing it once.');
  return [
    `  /** ${comment.join(' ')} */`,
    `  ${name}(${taken.join(', ')}): ${returned} {`,
    `    return this.${call}({ ${request.join(', ')} }, options);`,
    '  }',
  ].join('\n');
}

function writeWait(group: string, status: string): string {
  const type = capitalize(group).slice(0, -1);
  const id = `${type.toLowerCase()}Id`;
  return [
    '  /**',
    `   * Polls until it is no longer \`${status}\`. Look at its \`status\`: it is \`failed\` if it did not succeed.`,
    '   * @throws {StillPendingError} at the deadline',
    '   */',
    `  waitUntilSettled(${id}: string, options: WaitOptions = {}): Promise<ApiResponse<api.${type}>> {`,
    `    return this.settled(${id}, '${status}', (one) => this.get(${id}, one), options);`,
    '  }',
  ].join('\n');
}

/** @returns the type of media and the schema's name, both empty if there is no content */
function schemaOf(content: Content = {}): [mediaType: string, schema: string] {
  const [mediaType = '', { schema } = { schema: { $ref: '' } }] = Object.entries(content)[0] ?? [];
  return [mediaType, schema.$ref.split('/').at(-1) ?? ''];
}

function capitalize(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
