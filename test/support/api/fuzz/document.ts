import { readFileSync } from 'node:fs';

export interface JsonSchema {
  type?: string;
  enum?: readonly string[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  properties?: Record<string, JsonSchema>;
  minProperties?: number;
  maxProperties?: number;
  propertyNames?: JsonSchema;
  additionalProperties?: JsonSchema;
  required?: readonly string[];
  const?: unknown;
  if?: JsonSchema;
  then?: JsonSchema;
  anyOf?: readonly JsonSchema[];
  items?: JsonSchema;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  $ref?: string;
}

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  schema: JsonSchema;
}

export interface Operation {
  method: string;
  /** With `{name}` for parameters, below /v1. */
  path: string;
  /** The only mode whose keys may use it. */
  mode: 'test' | 'live' | undefined;
  /** The mode in which there is something to be found. */
  fruitfulMode: 'test' | 'live';
  parameters: Parameter[];
  body: { required: boolean; schema: JsonSchema } | undefined;
  /** Its 200 is CSV. */
  isCsv: boolean;
  /** By status; null where there is no body. */
  responses: Map<number, JsonSchema | null>;
}

const FILE = new URL('../../../../docs/openapi.json', import.meta.url);

// biome-ignore lint/suspicious/noExplicitAny: a document as it is read.
export const readDocument = (): any => JSON.parse(readFileSync(FILE, 'utf8'));

/** A schema with every schema it refers to in its place; what stands beside a reference goes before what it says. */
// biome-ignore lint/suspicious/noExplicitAny: as above.
export function inlined(node: any, components: { schemas: Record<string, any> }): any {
  if (node === null || typeof node !== 'object') return node;
  if (Array.isArray(node)) return node.map((one) => inlined(one, components));
  const { $ref, ...own } = node;
  const whole = Object.fromEntries(
    Object.entries(own).map(([name, value]) => [name, inlined(value, components)]),
  );
  if ($ref === undefined) return whole;
  return { ...inlined(components.schemas[$ref.slice('#/components/schemas/'.length)], components), ...whole };
}

export function readOperations(): Operation[] {
  const { paths, components } = readDocument();
  return Object.entries<object>(paths).flatMap(([path, operations]) =>
    // biome-ignore lint/suspicious/noExplicitAny: a document as it is read.
    Object.entries<any>(operations as object).map(([method, operation]) => {
      const { requestBody, responses } = operation;
      const parameters: Parameter[] = operation.parameters.map((parameter: Parameter) => ({
        ...parameter,
        schema: inlined(parameter.schema, components),
      }));
      const schemaOf = (message: { content?: Record<string, { schema: JsonSchema }> }) => {
        const content = message.content?.['application/json'];
        return content === undefined ? null : (inlined(content.schema, components) as JsonSchema);
      };
      const schemas = new Map(
        // biome-ignore lint/suspicious/noExplicitAny: as above.
        Object.entries<any>(responses).map(([status, response]) => [Number(status), schemaOf(response)]),
      );
      return {
        method: method.toUpperCase(),
        path,
        mode: operation['x-mode'],
        parameters,
        fruitfulMode: operation['x-mode'] ?? onlyModeOf(schemas.get(200)) ?? 'test',
        isCsv: responses[200]?.content?.['text/csv'] !== undefined,
        body: requestBody && { required: requestBody.required, schema: schemaOf(requestBody) },
        responses: schemas,
      };
    }),
  );
}

/** The mode of all that an operation answers with, where that can be one alone. */
// biome-ignore lint/suspicious/noExplicitAny: a document as it is read.
function onlyModeOf(answer: any): 'test' | 'live' | undefined {
  const { properties } = answer ?? {};
  return (properties?.data?.items ?? { properties }).properties?.mode?.const;
}

/** Whether a value, or a parameter's text, is what the schema says: as far as schemas of requests go. */
export function isValid(schema: JsonSchema, value: unknown): boolean {
  const { type, anyOf, enum: values, minimum = -Infinity, maximum = Infinity, pattern } = schema;
  if (anyOf !== undefined) return anyOf.some((one) => isValid(one, value));
  if (type === 'null') return value === null;
  if (type === 'object' && schema.properties !== undefined) return isValidObject(schema, value);
  if (type === 'object') return isValidMap(schema, value);
  if (type === 'array') return isValidList(schema, value);
  if (type === 'integer') {
    return Number.isSafeInteger(value) && Number(value) >= minimum && Number(value) <= maximum;
  }
  if (type === 'boolean') return typeof value === 'boolean';
  if (type !== 'string') throw new Error(`the fuzzer knows no ${type}: teach it`);
  if (typeof value !== 'string' || (values !== undefined && !values.includes(value))) return false;
  const length = [...value].length;
  if (length < (schema.minLength ?? 0) || length > (schema.maxLength ?? Infinity)) return false;
  if (!hasFormat(schema.format, value)) return false;
  return pattern === undefined || new RegExp(pattern, 'u').test(value);
}

/** A format that nobody checks would let through what the service refuses, or keep a filter from ever ending. */
function hasFormat(format: string | undefined, text: string): boolean {
  switch (format) {
    case undefined:
    // Its pattern says all of it.
    case 'email':
      return true;
    case 'uri':
      return URL.canParse(text);
    case 'date-time':
      return isTimestamp(text);
    default:
      throw new Error(`the fuzzer knows no ${format}: teach it`);
  }
}

/** RFC 3339, whose seconds may be left out. */
const isTimestamp = (text: string) =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text) &&
  !Number.isNaN(Date.parse(text));

function isValidObject({ properties = {}, required = [] }: JsonSchema, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return (
    required.every((name) => name in value) &&
    Object.entries(value).every(([name, one]) => name in properties && isValid(properties[name] ?? {}, one))
  );
}

function isValidList(schema: JsonSchema, value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  const { items = {}, minItems = 0, maxItems = Infinity, uniqueItems = false } = schema;
  if (value.length < minItems || value.length > maxItems) return false;
  if (uniqueItems && new Set(value.map((one) => JSON.stringify(one))).size < value.length) return false;
  return value.every((one) => isValid(items, one));
}

function isValidMap(schema: JsonSchema, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { propertyNames = {}, additionalProperties = {}, maxProperties = Infinity } = schema;
  const entries = Object.entries(value);
  return (
    entries.length <= maxProperties &&
    entries.every(([name, one]) => isValid(propertyNames, name) && isValid(additionalProperties, one))
  );
}

/** Whether an object whose fields are valid by themselves is what `if` and `then` say of them together. */
export function fitsTogether(schema: JsonSchema, body: Record<string, unknown>): boolean {
  const { if: condition, then: consequence, minProperties = 0 } = schema;
  if (Object.keys(body).length < minProperties) return false;
  if (condition === undefined) return true;
  const isMet = (condition.anyOf ?? [condition]).some(({ properties = {} }) =>
    Object.entries(properties).every(([name, { const: value }]) => body[name] === value),
  );
  if (!isMet) return true;
  return Object.entries(consequence?.properties ?? {}).every(
    ([name, narrowed]) =>
      !(name in body) || isValid({ ...schema.properties?.[name], ...narrowed }, body[name]),
  );
}

/** {@link isValid} of a query parameter or a header, which come as text. */
export function isValidText(schema: JsonSchema, text: string): boolean {
  if (schema.type !== 'integer') return isValid(schema, text);
  return /^-?(0|[1-9][0-9]*)$/.test(text) && isValid(schema, Number(text));
}
