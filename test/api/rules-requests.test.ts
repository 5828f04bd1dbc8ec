import assert from 'node:assert/strict';
import type { Declaration } from '../../api/http/route.ts';
import { DECLARATIONS } from '../../api/routes.ts';
import { untouchedPartner } from '../support/api/accounts.ts';
import { expectError } from '../support/api/answers.ts';
import { exampleOf, modesOf, nameOf, pathTo } from '../support/api/declared-operations.ts';
import { isValid, type JsonSchema, readOperations } from '../support/api/fuzz/document.ts';
import { rawRequest, sendRaw } from '../support/api/raw-request.ts';
import type { Answer, CallOptions } from '../support/stack.ts';

const MAX_BODY_BYTES = 65_536;
const NO_OBJECTS = ['{', '{}{}', '\ufeff{}', '[]', '[{}]', 'null', 'true', '0', '""', ' ', '{}x', 'NaN'];
const NO_JSON_TYPES = [
  ...['text/plain', 'application/x-www-form-urlencoded', 'application/vnd.api+json', ''],
  ...['application/json; charset=utf-16', 'application/json, application/json', 'application/jsonx'],
  ...['application/json; charset=latin1', 'application/xml'],
];
const ENCODINGS = ['gzip', 'deflate', 'br', 'zstd', 'gzip, identity', 'x', 'GZIP'];
const NO_KEYS = ['x'.repeat(256), 'ü', 'a\tb', 'a\xa0b'];
const NO_AMOUNTS = [
  ...['"100"', '"1e2"', '100.0', '100.5', '1e2', '1E2', '1e400', '-1e400', '1e-7', '0', '-0', '-1', '-100'],
  ...['9007199254740992', '9007199254740993', '18446744073709551617', '123456789012345678901234567890'],
  ...['0.1e4', '99999999999999999999.9', 'null', 'true', '""', '[]', '[100]', '{}', '{"amount":100}'],
];

const NO_CHARACTERS = [
  ...['\u0000', '\n', '\u007f', '\u0085', '\ud800', '\udc00', '\ud83d '],
  // Invisible, or turning the direction of what stands around it.
  ...['\u00ad', '\u061c', '\u200b', '\u200e', '\u2028', '\u202e', '\u2066', '\ufeff', '\ufff9'],
];

/** The schema of each operation's body. */
const SCHEMAS = new Map<string, JsonSchema | undefined>(
  readOperations().map(({ method, path, body }) => [`${method} ${path}`, body?.schema]),
);

/** Values of every type, and around what the schema allows. */
function valuesAround(schema: JsonSchema): unknown[] {
  const { anyOf = [], maxLength, maximum, minimum, maxItems, items, properties = {} } = schema;
  const { additionalProperties: values, propertyNames: keys, maxProperties = 0 } = schema;
  const texts = (count: number) => Array.from({ length: count }, (_, n) => `x${n}`);
  return [
    ...[null, true, 1, 1.5, -1, 0, 2 ** 53, '', 'x', [], {}, [{}], { x: 1 }],
    ...NO_CHARACTERS.map((character) => `a${character}b`),
    ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1), '\u{1f4a5}'.repeat(maxLength + 1)]),
    ...(maximum === undefined ? [] : [maximum + 1]),
    ...(minimum === undefined ? [] : [minimum - 1]),
    ...(maxItems === undefined ? [] : [texts(maxItems + 1)]),
    ...(items === undefined ? [] : valuesAround(items).map((value) => [value])),
    ...(values === undefined ? [] : valuesAround(values).map((value) => ({ x: value }))),
    ...(keys === undefined ? [] : valuesAround(keys).map((key) => ({ [String(key)]: 'x' }))),
    ...(values === undefined ? [] : [Object.fromEntries(texts(maxProperties + 1).map((key) => [key, 'x']))]),
    ...Object.entries(properties).flatMap(([name, field]) =>
      valuesAround(field).map((value) => ({ [name]: value })),
    ),
    ...anyOf.flatMap((one) => valuesAround(one)),
  ];
}

/** Fails unless the answer is a 400 about this field or something in it. */
function expectFieldError(answer: Answer, name: string, value: unknown): void {
  const what = `${name}: ${JSON.stringify(value)}: ${answer.text}`;
  const paths: string[] = (answer.json.error?.issues ?? []).map(({ path }: { path: string }) => path);
  assert.ok(paths.length > 0 && paths.every((path) => path.split('.')[0] === name), what);
  expectError(answer, 'validation_failed', paths);
}

/** What every operation refuses before it looks for anything or writes anything. */
describe('every operation', () => {
  const running = untouchedPartner();

  /** Its example with something else about it. The ids in the path are none. */
  const ask = (declaration: Declaration, changes: CallOptions = {}, query = ''): Promise<Answer> => {
    const path = pathTo(declaration);
    return running.partner.call(
      declaration.method.toUpperCase(),
      query === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`,
      { mode: modesOf(declaration)[0], ...exampleOf(declaration), ...changes },
    );
  };
  /** A request as bytes, with the header lines of a correct one and those that are given. */
  const head = (declaration: Declaration, lines: readonly (readonly [string, string])[]) => [
    ['Authorization', `Bearer ${running.partner.keys[modesOf(declaration)[0] ?? 'test']}`] as const,
    ...(declaration.idempotencyKey ? [['Idempotency-Key', 'k'] as const] : []),
    ...lines,
  ];

  for (const declaration of DECLARATIONS) {
    const { method, mode, body, bodyIsOptional, idempotencyKey, examples } = declaration;
    const wrong: CallOptions = method === 'get' || method === 'delete' ? {} : { body: '!' };

    describe(nameOf(declaration), () => {
      it('answers 401 without a valid key, before it looks at anything else', async () => {
        const headers = { authorization: 'Bearer nothing' };
        expectError(await ask(declaration, { ...wrong, headers }, 'x=1'), 'invalid_api_key');
      });

      if (mode !== undefined) {
        it(`answers 403 to a key of the other mode than ${mode}, before it looks at anything else`, async () => {
          const other = mode === 'test' ? 'live' : 'test';
          expectError(
            await ask(declaration, { ...wrong, mode: other }, 'x=1'),
            mode === 'test' ? 'live_key_not_allowed' : 'test_key_not_allowed',
          );
        });
      }

      it('answers 400 for a query parameter that it does not have, or that is sent twice', async () => {
        expectError(await ask(declaration, {}, 'expand=x'), 'validation_failed', ['expand']);
        expectError(await ask(declaration, {}, 'a=1&b=2&a=3'), 'validation_failed', ['a', 'b']);
        const required = Object.keys(examples.query ?? {});
        expectError(await ask(declaration, {}, 'a=%FF'), 'validation_failed', ['query', ...required]);
      });

      it('answers 400 for an Idempotency-Key that is sent twice, used or not', async () => {
        const path = `/v1${pathTo(declaration)}`;
        const lines = head(declaration, [
          ['Idempotency-Key', 'k'],
          ...(idempotencyKey ? [] : [['Idempotency-Key', 'k'] as const]),
        ]);
        expectError(
          await rawRequest(running.stack, method.toUpperCase(), path, lines),
          'idempotency_key_invalid',
          ['Idempotency-Key'],
        );
      });

      if (idempotencyKey) {
        it('answers 400 for an Idempotency-Key that is too long or not printable ASCII', async () => {
          for (const key of NO_KEYS.map((text) => Buffer.from(text).toString('latin1')))
            expectError(await ask(declaration, { idempotencyKey: key }), 'idempotency_key_invalid', [
              'Idempotency-Key',
            ]);
        });
      }

      if (idempotencyKey === 'required') {
        it('answers 400 for an Idempotency-Key that is missing or empty', async () => {
          for (const key of [undefined, '', '   ']) {
            const { body } = exampleOf(declaration);
            const answer = await running.partner.call('POST', pathTo(declaration), {
              body,
              ...(key !== undefined && { idempotencyKey: key }),
            });
            expectError(answer, 'idempotency_key_missing', ['Idempotency-Key']);
          }
        });
      }

      if (body === undefined) return;
      const json = { 'content-type': 'application/json' };
      const sent = (text: string | undefined, headers: Record<string, string> = json) =>
        ask(declaration, { body: text, headers });
      const example = JSON.stringify(examples.body ?? {});
      const withField = (field: string) => example.replace(/}$/, `${example === '{}' ? '' : ','}${field}}`);

      it('answers 400 for a body that is not a JSON object', async () => {
        for (const text of NO_OBJECTS) expectError(await sent(text), 'validation_failed', ['body']);
      });

      it('answers 400 for a field that it does not have, or that is sent twice', async () => {
        for (const name of ['x', '__proto__', 'constructor', 'toString', ''])
          expectError(await sent(withField(`"${name}":{}`)), 'validation_failed', [name]);
        for (const again of ['"x":1,"x":1', '"x":1,"\\u0078":2', '"x":{"a":1,"a":1}']) {
          const answer = await sent(withField(again));
          expectError(answer, 'validation_failed', ['body']);
          assert.match(answer.text, /contain a field twice/);
        }
      });

      it('answers 415 for a body of another type or in an encoding', async () => {
        for (const type of NO_JSON_TYPES)
          expectError(await sent(example, { 'content-type': type }), 'unsupported_media_type');
        for (const encoding of ENCODINGS)
          expectError(
            await sent(example, { ...json, 'content-encoding': encoding }),
            'unsupported_media_type',
          );
      });

      it('answers 413 for more than 64 KiB, and reads exactly 64 KiB', async () => {
        expectError(await sent(' '.repeat(MAX_BODY_BYTES + 1)), 'body_too_large');
        const full = withField('"x":1');
        const spaces = ' '.repeat(MAX_BODY_BYTES - Buffer.byteLength(full));
        expectError(await sent(full + spaces), 'validation_failed', ['x']);
      });

      if (!bodyIsOptional) {
        it('answers 400 for a missing body', async () => {
          const path = `/v1${pathTo(declaration)}`;
          const lines = head(declaration, [['Content-Type', 'application/json']]);
          for (const more of [[], [['Content-Length', '0'] as const]])
            expectError(
              await rawRequest(running.stack, method.toUpperCase(), path, [...lines, ...more]),
              'validation_failed',
              ['body'],
            );
        });
      }

      const schema = SCHEMAS.get(nameOf(declaration));
      for (const [name, field] of Object.entries(schema?.properties ?? {})) {
        it(`answers 400 for a value of ${name} that its schema does not allow, and names it`, async () => {
          const values = valuesAround(field).filter((value) => !isValid(field, value));
          assert.ok(values.length >= 4, name);
          for (const value of values) {
            const answer = await sent(JSON.stringify({ ...examples.body, [name]: value }));
            expectFieldError(answer, name, value);
          }
        });
      }

      if (schema?.required !== undefined) {
        it('answers 400 for each field that is missing, and names it', async () => {
          for (const name of schema.required ?? []) {
            const { [name]: _, ...others } = { ...examples.body } as Record<string, unknown>;
            expectFieldError(await sent(JSON.stringify(others)), name, undefined);
          }
        });
      }

      if (/"amount":\d/.test(example)) {
        it('answers 400 for an amount that is not an integer from 1 to 2^53 − 1', async () => {
          for (const amount of NO_AMOUNTS)
            expectError(
              await sent(example.replace(/"amount":\d+/, () => `"amount":${amount}`)),
              'validation_failed',
              ['amount'],
            );
        });
      }
    });
  }
});

/** What differs between no two operations with a body, so it is asked of one. */
describe('a body', () => {
  const running = untouchedPartner();

  const postBytes = (headers: string, ...parts: (string | Buffer)[]) =>
    sendRaw(
      running.stack,
      `POST /v1/cards HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${running.partner.keys.test}\r\nConnection: close\r\n`,
      `Idempotency-Key: k\r\nContent-Type: application/json\r\n${headers}\r\n`,
      ...parts,
    );

  it('is refused with up to 50 wrong fields named', async () => {
    const unknown = Array.from({ length: 150 }, (_, index) => `f${index}`);
    const fields = Object.fromEntries(unknown.map((name) => [name, 1]));
    const body = { amount: '1', email: 'x', ...fields };
    const answer = await running.partner.call('POST', '/cards', { body, idempotencyKey: 'k' });
    expectError(answer, 'validation_failed', ['amount', 'external_ref', 'email', ...unknown.slice(0, 47)]);
    assert.match(answer.json.error.message, /and 40 more/);
  });

  it('is refused with 400 if it is nested to any depth', async () => {
    for (const depth of [30, 40, 30_000]) {
      const deep = '['.repeat(depth) + ']'.repeat(depth);
      const body = `{"external_ref":"r","amount":${deep}}`;
      const inside = await running.partner.call('POST', '/cards', { body, idempotencyKey: 'k' });
      expectError(inside, 'validation_failed', [depth > 32 ? 'body' : 'amount']);
    }
  });

  it('is refused with 400 if its bytes are not UTF-8', async () => {
    const valid = '{"external_ref":"r","amount":1}';
    for (const bytes of [
      Buffer.from(valid.replace('{', '{"x":"\xff\xfe",'), 'latin1'),
      Buffer.from(valid, 'utf16le'),
      Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')]),
      Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xc0, 0x80]), Buffer.from('"}')]),
    ])
      expectError(await postBytes(`Content-Length: ${bytes.length}\r\n`, bytes), 'validation_failed', [
        'body',
      ]);
  });

  it('is refused with 413 above 64 KiB, with or without a length, and read to its end', async () => {
    const large = Buffer.alloc(16 * MAX_BODY_BYTES, ' ');
    const chunk = Buffer.concat([
      Buffer.from('10000\r\n'),
      Buffer.alloc(MAX_BODY_BYTES, ' '),
      Buffer.from('\r\n'),
    ]);
    for (const [headers, ...parts] of [
      [`Content-Length: ${large.length}\r\n`, large],
      ['Transfer-Encoding: chunked\r\n', ...Array<Buffer>(16).fill(chunk), '0\r\n\r\n'],
    ] as [string, ...(string | Buffer)[]][])
      expectError(await postBytes(headers, ...parts), 'body_too_large');
  });

  it('may say that it is JSON in other words', async () => {
    const path = `/cards/card_${'0'.repeat(26)}/topups`;
    for (const type of ['application/json;', 'application/json ; charset=UTF-8', 'Application/JSON']) {
      const headers = { 'content-type': type };
      const answer = await running.partner.call('POST', path, {
        ...{ body: { amount: 500 }, headers },
        idempotencyKey: type,
      });
      expectError(answer, 'card_not_found');
    }
  });

  it('that is optional may be empty, whatever its type', async () => {
    const path = `/cards/card_${'0'.repeat(26)}/freeze`;
    const send = (body: string | undefined, type: string) =>
      running.partner.call('POST', path, { body, headers: { 'content-type': type } });
    expectError(await running.partner.call('POST', path), 'card_not_found');
    for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/plain', 'x'])
      expectError(await send('', type), 'card_not_found');
    for (const body of ['{}', ' {\n} ']) expectError(await send(body, 'application/json'), 'card_not_found');
    const chunked = await sendRaw(
      running.stack,
      `POST /v1${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${running.partner.keys.test}\r\n`,
      'Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    );
    expectError(chunked, 'card_not_found');
  });
});
