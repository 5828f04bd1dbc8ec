import assert from 'node:assert/strict';
import { expectError } from '../../support/api/answers.ts';
import { sendRaw } from '../../support/api/raw-request.ts';
import { untouchedStack } from '../../support/api/untouched-stack.ts';

const KIB = 1_024;

/** What a body is, as JSON's text; `AMOUNT` stands for where the amount goes. */
const ROUTES: Record<string, string> = {
  '/quotes': '{"type":"card_issue","amount":AMOUNT}',
  '/cards': '{"external_ref":"r","amount":AMOUNT}',
  '/test/credit': '{"amount":AMOUNT}',
  '/cards/card_01k0000000000000000000000a/topups': '{"amount":AMOUNT}',
  '/cards/card_01k0000000000000000000000a/withdrawals': '{"amount":AMOUNT}',
  '/test/cards/card_01k0000000000000000000000a/simulate-transaction': '{"type":"purchase","amount":AMOUNT}',
};
const AMOUNTS = [
  ...['"100"', '"1e2"', '100.0', '100.5', '1e2', '1E2', '1e400', '-1e400', '1e-7', '0', '-0', '-1', '-100'],
  ...['9007199254740992', '9007199254740993', '18446744073709551617', '123456789012345678901234567890'],
  ...['0.1e4', '99999999999999999999.9', 'null', 'true', '""', '[]', '[100]', '{}', '{"amount":100}'],
];
const NO_JSON = [
  ...['{', '{"amount":1', '{amount:1}', "{'amount':1}", '{"amount":1,}', '{"amount":01}', '{"amount":+1}'],
  ...['{"amount":0x10}', '{"amount":1_000}', '{"amount":NaN}', '{"amount":Infinity}', '{"amount":1n}'],
  ...['{"amount":1}{"amount":2}', '{"amount":1} x', '{"a\x00":1}', '{"a":"\x01"}', '{"a":"\\x"}', 'amount=1'],
  ...[
    'undefined',
    '/**/{"amount":1}',
    '{"amount":.5}',
    '{"amount":5.}',
    '{"amount":-}',
    '{"amount":"\\u12"}',
  ],
];

describe('the API', () => {
  const running = untouchedStack();

  const post = (path: string, body: string) =>
    running.partner.call('POST', path, {
      body,
      idempotencyKey: 'k',
      headers: { 'content-type': 'application/json' },
    });
  /** Bytes that are no text, or in pieces. */
  const postBytes = (path: string, headers: string, ...parts: (string | Buffer)[]) =>
    sendRaw(
      running.stack,
      `POST /v1${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${running.partner.keys.test}\r\nConnection: close\r\n`,
      `Idempotency-Key: k\r\nContent-Type: application/json\r\n${headers}\r\n`,
      ...parts,
    );

  for (const [path, shape] of Object.entries(ROUTES)) {
    describe(`at POST ${path}`, () => {
      it('answers 400 for an amount that is not an integer from 1 to 2^53 − 1', async () => {
        for (const amount of AMOUNTS) {
          expectError(await post(path, shape.replace('AMOUNT', amount)), 'validation_failed', ['amount']);
        }
      });

      it('answers 400 for a body that is not JSON', async () => {
        for (const body of NO_JSON) expectError(await post(path, body), 'validation_failed', ['body']);
      });

      it('answers 400 for a body that is not an object, and for a missing one', async () => {
        for (const body of ['[]', '[{"amount":1}]', 'null', 'true', '1', '"amount"', ' ']) {
          expectError(await post(path, body), 'validation_failed', ['body']);
        }
        expectError(await postBytes(path, 'Content-Length: 0\r\n'), 'validation_failed', ['body']);
        expectError(await postBytes(path, ''), 'validation_failed', ['body']);
      });

      it('answers 400 for a name that appears twice, whatever its values and spelling', async () => {
        const once = shape.replace('AMOUNT', '1');
        for (const again of [
          '"amount":1',
          '"amount":2',
          '"\\u0061mount":2',
          '"amount":":"',
          '"x":{"a":1,"a":1}',
        ]) {
          const answer = await post(path, once.replace(/}$/, `,${again}}`));
          expectError(answer, 'validation_failed', ['body']);
          assert.match(answer.text, /contain a field twice/);
        }
      });

      it('answers 400 for names such as __proto__', async () => {
        for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '']) {
          const body = shape.replace('AMOUNT', `1,"${name}":{"amount":1}`);
          expectError(await post(path, body), 'validation_failed', [name]);
        }
      });

      it('answers 400 for JSON that is nested to any depth', async () => {
        for (const depth of [100, 30_000]) {
          const deep = '['.repeat(depth) + ']'.repeat(depth);
          const inside = await post(path, shape.replace('AMOUNT', deep));
          expectError(inside, 'validation_failed', [depth > 100 ? 'body' : 'amount']);
          expectError(await post(path, deep), 'validation_failed', ['body']);
        }
      });

      it('answers 400 for bytes that are not UTF-8, and for a byte order mark', async () => {
        const valid = shape.replace('AMOUNT', '1');
        for (const bytes of [
          Buffer.from(valid.replace('{', '{"x":"\xff\xfe",'), 'latin1'),
          Buffer.from(valid, 'utf16le'),
          Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(valid)]),
          Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')]),
          Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xc0, 0x80]), Buffer.from('"}')]),
        ]) {
          const answer = await postBytes(path, `Content-Length: ${bytes.length}\r\n`, bytes);
          expectError(answer, 'validation_failed', ['body']);
        }
      });

      it('answers 413 for more than 64 KiB, with or without a length, and reads the rest', async () => {
        const large = Buffer.alloc(KIB * KIB, ' ');
        const chunk = Buffer.concat([
          Buffer.from('10000\r\n'),
          Buffer.alloc(64 * KIB, ' '),
          Buffer.from('\r\n'),
        ]);
        for (const [headers, ...parts] of [
          [`Content-Length: ${large.length}\r\n`, large],
          ['Transfer-Encoding: chunked\r\n', ...Array<Buffer>(16).fill(chunk), '0\r\n\r\n'],
          [`Content-Length: ${64 * KIB + 1}\r\n`, large.subarray(0, 64 * KIB + 1)],
        ] as [string, ...(string | Buffer)[]][]) {
          expectError(await postBytes(path, headers, ...parts), 'body_too_large');
        }
      });

      it('accepts a body of exactly 64 KiB', async () => {
        const body = shape.replace('AMOUNT', '0').padEnd(64 * KIB);
        expectError(await post(path, body), 'validation_failed', ['amount']);
      });
    });
  }
});
