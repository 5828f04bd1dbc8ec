import fc from 'fast-check';
import type { Mode } from '../../../../domain/mode.ts';
import {
  fitsTogether,
  isValid,
  isValidText,
  type JsonSchema,
  type Operation,
  type Parameter,
} from './document.ts';

/** A parameter's text, or one of the ids that were seen in answers. */
export type Text = string | { pick: number; pattern: string };

export interface FuzzRequest {
  operation: Operation;
  /** What is wrong with it; null: nothing. */
  wrong: string | null;
  /** Statuses of what is wrong; of a valid request any that is declared and no complaint. */
  expected: readonly number[];
  mode: Mode;
  path: Record<string, Text>;
  query: [name: string, text: Text][];
  headers: [name: string, text: string][];
  body: string | null;
}

const KEY = 'Idempotency-Key';

/** Leaves out what is refused though patterns can't say so: invisible characters of the other planes, or these alone. */
const withoutUnseen = (text: string) =>
  text
    .replace(/[\p{Default_Ignorable_Code_Point}--[\0-\uffff]]/gv, 'x')
    .replace(/^[\p{Default_Ignorable_Code_Point}\p{Z}]+$/u, 'x');

const anyString = (constraints: fc.StringConstraints) =>
  fc.string({ unit: 'binary', ...constraints }).map(withoutUnseen);

/**
 * Requests that the document allows, and ones that it doesn't because of one value. What is refused of every operation alike
 * is in test/api/rules-requests.test.ts.
 */
export function arbitraryRequest(
  operations: readonly Operation[],
  hookUrl: string,
): fc.Arbitrary<FuzzRequest> {
  const ofOne = operations.map((operation) => {
    const valid = arbitraryValid(operation, hookUrl);
    const spoil = [unknownQuery, ...eachParameter(operation), ...ofBody(operation)];
    const invalid = fc
      .tuple(valid, fc.constantFrom(...spoil))
      .chain(([request, spoilOne]) => spoilOne(request));
    return fc.oneof({ weight: 3, arbitrary: valid }, { weight: 2, arbitrary: invalid });
  });
  return fc.oneof(...ofOne);
}

function arbitraryValid(operation: Operation, hookUrl: string): fc.Arbitrary<FuzzRequest> {
  const ofPlace = (place: Parameter['in']) =>
    operation.parameters.filter((parameter) => parameter.in === place);
  const textsOf = (parameters: Parameter[]) =>
    fc.record(Object.fromEntries(parameters.map(({ name, schema }) => [name, arbitraryText(schema)])), {
      requiredKeys: parameters.filter(({ required }) => required).map(({ name }) => name),
    });
  return fc
    .record({
      // Live mode has workflows behind it: fewer of these.
      mode: fc.constantFrom<Mode>(...Array.from({ length: 9 }, () => operation.fruitfulMode), 'live'),
      path: textsOf(ofPlace('path')),
      query: textsOf(ofPlace('query')),
      headers: textsOf(ofPlace('header')),
      type: fc.constantFrom(
        'application/json',
        'application/json; charset=utf-8',
        'Application/JSON;charset="UTF-8"',
      ),
      body:
        operation.body === undefined ? fc.constant(undefined) : arbitraryBody(operation.body.schema, hookUrl),
      withBody: operation.body?.required ? fc.constant(true) : fc.boolean(),
    })
    .map(({ mode, path, query, headers, type, body, withBody }) => {
      const hasBody = withBody && body !== undefined;
      return {
        ...{ operation, wrong: null, expected: [], mode, path },
        query: Object.entries(withPeriod(query)) as [string, Text][],
        headers: [
          ...(Object.entries(headers) as [string, string][]),
          ...(hasBody ? [['Content-Type', type] as [string, string]] : []),
        ],
        body: hasBody ? JSON.stringify(body) : null,
      };
    });
}

/** A report's `to` is later than its `from`, which only descriptions say. */
function withPeriod(query: Record<string, Text>): Record<string, Text> {
  const { from, to } = query;
  if (typeof from !== 'string' || typeof to !== 'string') return query;
  const days = 1 + (Math.abs(Date.parse(to) - Date.parse(from)) % 365);
  return { ...query, to: new Date(Date.parse(from) + days * 86_400_000).toISOString() };
}

function arbitraryBody(schema: JsonSchema, hookUrl: string): fc.Arbitrary<Record<string, unknown>> {
  const fields: Record<string, fc.Arbitrary<unknown>> = {};
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    fields[name] =
      field.format === 'uri' ? fc.webPath().map((path) => hookUrl + path) : arbitraryValue(field);
  }
  return fc
    .record(fields, { requiredKeys: [...(schema.required ?? [])] })
    .filter((body) => fitsTogether(schema, body))
    .map(inOrder);
}

/** A replay's `created_lte` is not before its `created_gte`, which no schema can say. */
function inOrder(body: Record<string, unknown>): Record<string, unknown> {
  const { created_gte: from, created_lte: until } = body;
  if (typeof from !== 'string' || typeof until !== 'string' || Date.parse(from) <= Date.parse(until))
    return body;
  return { ...body, created_gte: until, created_lte: from };
}

function arbitraryText(schema: JsonSchema): fc.Arbitrary<Text> {
  const { pattern = '' } = schema;
  const [, prefix] = /^\^([a-z]+_)/.exec(pattern) ?? [];
  if (prefix === undefined) return arbitraryValue(schema).map(String);
  const unknown = fc
    .string({ unit: fc.constantFrom(...'0123456789abcdefghjkmnpqrstvwxyz'), minLength: 26, maxLength: 26 })
    .map((digits) => prefix + digits);
  return fc.oneof(
    { weight: 9, arbitrary: fc.nat().map((pick) => ({ pick, pattern })) },
    { weight: 1, arbitrary: unknown },
  );
}

function arbitraryValue(schema: JsonSchema): fc.Arbitrary<unknown> {
  const {
    type,
    anyOf,
    enum: values,
    minimum = 0,
    maximum = Number.MAX_SAFE_INTEGER,
    pattern,
    maxLength = 300,
  } = schema;
  if (anyOf !== undefined) return fc.oneof(...anyOf.map(arbitraryValue));
  if (type === 'null') return fc.constant(null);
  if (type === 'object' && schema.properties !== undefined) {
    const fields: Record<string, fc.Arbitrary<unknown>> = {};
    for (const [name, field] of Object.entries(schema.properties)) fields[name] = arbitraryValue(field);
    return fc.record(fields, { requiredKeys: [...(schema.required ?? [])] }).map(withoutContradiction);
  }
  if (type === 'array') {
    const { items = {}, minItems = 0 } = schema;
    const lists = schema.uniqueItems === true ? fc.uniqueArray : fc.array;
    return lists(arbitraryValue(items), { minLength: minItems, maxLength: minItems + 3 });
  }
  if (type === 'object') {
    const { propertyNames = {}, additionalProperties = {} } = schema;
    // The service refuses this name of metadata: JavaScript's objects can lose it.
    const name = (arbitraryValue(propertyNames) as fc.Arbitrary<string>).filter(
      (text) => text !== '__proto__',
    );
    return fc.dictionary(name, arbitraryValue(additionalProperties), { maxKeys: 5 });
  }
  if (values !== undefined) return fc.constantFrom(...values);
  if (type === 'boolean') return fc.boolean();
  if (type === 'integer') {
    const small = fc.oneof(
      fc.integer({ min: minimum, max: Math.min(maximum, 20_000) }),
      fc.integer({ min: minimum, max: Math.min(maximum, minimum + 20) }),
    );
    const any = fc.oneof(fc.integer({ min: minimum, max: maximum }), fc.constantFrom(minimum, maximum));
    return fc.oneof({ weight: 4, arbitrary: small }, { weight: 1, arbitrary: any });
  }
  const matching =
    pattern === undefined || schema.format === 'date-time' || schema.format === 'email'
      ? []
      : [fc.stringMatching(new RegExp(pattern, 'u')).map(withoutUnseen)];
  const written = {
    'date-time': arbitraryTimestamp,
    email: fc.emailAddress({ size: 'small' }),
    none: fc.oneof(anyString({ maxLength }), anyString({ unit: 'grapheme', maxLength }), ...matching),
  }[schema.format ?? 'none'];
  if (written === undefined) throw new Error(`the fuzzer knows no ${schema.format}: teach it`);
  return (matching.length > 0 && pattern?.includes('{') ? fc.oneof(...matching) : written).filter((text) =>
    isValid(schema, text),
  );
}

/** Spending controls allow or block categories and countries. That they can't do both stands in descriptions alone. */
function withoutContradiction(value: Record<string, unknown>): Record<string, unknown> {
  for (const name of Object.keys(value)) {
    if (name.startsWith('blocked_') && value[name.replace('blocked_', 'allowed_')] != null)
      value[name] = null;
  }
  return value;
}

const arbitraryTimestamp = fc
  .tuple(
    fc.date({
      min: new Date('0001-01-01T00:00:00Z'),
      max: new Date('9998-12-31T00:00:00Z'),
      noInvalidDate: true,
    }),
    fc.constantFrom('', '.1', '.123', '.123456789'),
    fc.constantFrom('Z', '+00:00', '-23:59', '+23:59', '+05:30'),
  )
  .map(([date, fraction, zone]) => date.toISOString().slice(0, 19) + fraction + zone);

type Spoil = (request: FuzzRequest) => fc.Arbitrary<FuzzRequest>;

const wrongly = (
  request: FuzzRequest,
  wrong: string,
  expected: number[],
  change: Partial<FuzzRequest>,
): FuzzRequest => ({
  ...request,
  ...change,
  wrong,
  expected,
});

const STRANGE = fc.oneof(
  fc.constantFrom('', ' ', ..."0 -1 007 +5 1e1 1.0 101 null [] ' %".split(' '), '\0', '\u202e', '\ufeff'),
  anyString({ maxLength: 400 }),
  fc.string({ maxLength: 40 }),
);

const unknownQuery: Spoil = (request) =>
  fc
    .string({ minLength: 1, maxLength: 20 })
    .filter((name) => operationHasNo(request.operation, name))
    .map((name) =>
      wrongly(request, 'an unknown parameter', [400], { query: [...request.query, [name, 'x']] }),
    );

const operationHasNo = (operation: Operation, name: string) =>
  !operation.parameters.some((parameter) => parameter.name === name);

function eachParameter(operation: Operation): Spoil[] {
  return operation.parameters.flatMap(({ name, in: place, schema }): Spoil[] => {
    const strange = STRANGE.filter((text) => !isValidText(schema, text) && text.isWellFormed());
    if (place === 'path') {
      // An empty one or one with dots alone is another path.
      const ids = strange.filter((text) => !/^\.{0,2}$/.test(text));
      return [
        (request) =>
          ids.map((text) => wrongly(request, name, [404], { path: { ...request.path, [name]: text } })),
      ];
    }
    if (place === 'query') {
      const without = (request: FuzzRequest) => request.query.filter(([other]) => other !== name);
      return [
        (request) =>
          strange.map((text) =>
            wrongly(request, name, [400], { query: [...without(request), [name, text]] }),
          ),
      ];
    }
    return [];
  });
}

function ofBody({ body }: Operation): Spoil[] {
  if (body === undefined) return [];
  const { properties = {}, required = [] } = body.schema;
  const withBody = (request: FuzzRequest, wrong: string, fields: object) =>
    wrongly(request, wrong, [400], {
      body: JSON.stringify(fields),
      headers: [...request.headers.filter(([name]) => name === KEY), ['Content-Type', 'application/json']],
    });
  const fieldsOf = (request: FuzzRequest): Record<string, unknown> => JSON.parse(request.body ?? '{}');
  const values = fc.oneof(
    STRANGE,
    fc.constantFrom(null, true, 0, -1, 1.5, 2 ** 53, 1e300, [], {}, ['x'], { x: 1 }),
    // Drawing each of its characters would cost half the time of the whole test.
    fc
      .tuple(anyString({ minLength: 1, maxLength: 20 }), fc.integer({ min: 256, max: 2_100 }))
      .map(([text, length]) => text.repeat(length / text.length + 1)),
  );
  return [
    ...Object.entries(properties).map(
      ([name, schema]): Spoil =>
        (request) =>
          values
            .filter((value) => !isValid(schema, value))
            .map((value) => withBody(request, `body.${name}`, { ...fieldsOf(request), [name]: value })),
    ),
    ...required.map(
      (name): Spoil =>
        (request) => {
          const { [name]: _, ...rest } = fieldsOf(request);
          return fc.constant(withBody(request, `no body.${name}`, rest));
        },
    ),
  ];
}
