// biome-ignore-all lint/suspicious/noExplicitAny: the document's shape is what is under test.

import assert from 'node:assert/strict';
import { z } from 'zod';
import { EventType } from '../../../domain/event.ts';
import { fitsTogether, inlined, readDocument } from '../../support/api/fuzz/document.ts';
import { column } from '../../support/column.ts';

/** What a generator and a reader need of docs/openapi.json, beside its being true, which openapi-fuzz.test.ts shows. */
describe('the OpenAPI document', () => {
  const document = readDocument();
  const { components } = document;
  const operations: [name: string, operation: any][] = [document.paths, document.webhooks].flatMap((paths) =>
    Object.entries<any>(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]): [string, any] => [`${method} ${path}`, operation]),
    ),
  );
  const messages: [name: string, message: any][] = operations.flatMap(([name, { requestBody, responses }]) =>
    Object.entries({ ...(requestBody && { body: requestBody }), ...responses }).map(
      ([what, message]): [string, any] => [`${name}: ${what}`, message],
    ),
  );
  // Reports are CSV.
  const contents = messages
    .filter(([, message]) => message.content)
    .map(([name, { content }]): [string, any] => [name, content['application/json'] ?? content['text/csv']]);

  const exampleAt = (ref: string) => components.examples[ref.slice('#/components/examples/'.length)].value;

  it('gives every operation a unique id that begins with the name of its tag', () => {
    assert.equal(new Set(operations.map(([, { operationId }]) => operationId)).size, operations.length);
    for (const [name, { operationId, tags }] of operations) {
      const [tag = ''] = tags;
      const upper = (_: string, letter: string) => letter.toUpperCase();
      const camelCase = tag.toLowerCase().replace(/ (\w)/g, upper);
      assert.match(operationId, new RegExp(`^${camelCase}\\.[a-z][A-Za-z]+$`), name);
      assert.equal(tags.length, 1, name);
    }
    const used = new Set(operations.flatMap(([, { tags }]) => tags));
    assert.deepEqual(column(document.tags, 'name'), [...used]);
  });

  it('describes every operation, parameter, header, schema and field in a sentence', () => {
    const bare: string[] = [];
    const check = (where: string, one: any) => {
      const text: string | undefined = one.description ?? one.summary;
      if (!/^[A-Z`1-9].+[.:)]$/s.test(text ?? '')) bare.push(`${where}: ${text}`);
    };
    const eachField = (where: string, schema: any) => {
      for (const [field, one] of Object.entries<any>(schema?.properties ?? {})) {
        check(`${where}.${field}`, inlined(one, components));
        eachField(`${where}.${field}`, one);
        eachField(`${where}.${field}`, one.items);
      }
    };
    for (const [name, operation] of operations) {
      check(name, operation);
      if (operation.tags[0] === 'Webhooks') assert.equal(`post ${operation.summary}`, name);
      else assert.match(operation.summary, /^[A-Z].+[^.]$/, name);
      for (const parameter of operation.parameters) check(`${name} ${parameter.name}`, parameter);
    }
    for (const tag of document.tags) check(tag.name, tag);
    for (const [name, header] of Object.entries<any>(components.headers)) check(name, header);
    for (const [name, schema] of Object.entries<any>(components.schemas)) {
      check(name, schema);
      eachField(name, schema);
    }
    assert.deepEqual(bare, []);
  });

  it('uses only named schemas in requests and responses', () => {
    for (const [name, { schema }] of contents) assert.deepEqual(Object.keys(schema), ['$ref'], name);
  });

  it('has an example of every request and response, and each matches its schema', () => {
    for (const [name, { schema, example, examples }] of contents) {
      const whole = inlined(schema, components);
      // Zod reads all of it but these two.
      const { if: _if, then: _then, ...plain } = whole;
      const validator = z.fromJSONSchema(plain);
      const values = [
        ...(example === undefined ? [] : [example]),
        ...Object.values<any>(examples ?? {}).map(({ $ref }) => exampleAt($ref)),
      ];
      assert.ok(values.length > 0, `${name} has no example`);
      for (const value of values) {
        const { error } = validator.safeParse(value);
        assert.equal(error && z.prettifyError(error), undefined, name);
        assert.ok(fitsTogether(whole, value), name);
      }
    }
  });

  it('shows an error with each code under its status', () => {
    for (const [name, { examples }] of contents.filter(([, { schema }]) => /\/Error$/.test(schema.$ref))) {
      for (const [code, { $ref }] of Object.entries<any>(examples)) {
        assert.equal(exampleAt($ref).error.code, code, name);
      }
    }
  });

  it('has a webhook for each type of event, with an example of that type', () => {
    assert.deepEqual(Object.keys(document.webhooks).sort(), EventType.options.toSorted());
    for (const [type, { post }] of Object.entries<any>(document.webhooks)) {
      assert.equal(post.requestBody.content['application/json'].example.type, type);
    }
    for (const union of ['Event', 'WebhookEvent']) {
      assert.deepEqual(
        Object.keys(components.schemas[union].discriminator.mapping).sort(),
        EventType.options.toSorted(),
      );
    }
  });

  it('declares Request-Id on every response, Retry-After on 429, and Idempotent-Replayed where a key is taken', () => {
    for (const [name, { parameters, responses }] of operations.filter(([, { security }]) => !security)) {
      const takesKey = parameters.some((parameter: any) => parameter.name === 'Idempotency-Key');
      for (const [status, { headers }] of Object.entries<any>(responses)) {
        const named = Object.keys(headers);
        assert.ok(named.includes('Request-Id'), `${name} ${status}`);
        assert.ok(status !== '429' || named.includes('Retry-After'), `${name} ${status}`);
        const isReplayed = named.includes('Idempotent-Replayed');
        assert.ok(Number(status) >= 300 || isReplayed === takesKey, `${name} ${status}`);
      }
    }
  });
});
