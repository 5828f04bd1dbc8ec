import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ApiError } from '../../../domain/api-error.ts';
import { parseJson } from '../../../domain/parse-json.ts';

const parse = (text: string) => parseJson(Buffer.from(text));
const refuses = (text: string) =>
  assert.throws(
    () => parse(text),
    (error) => error instanceof ApiError && error.code === 'validation_failed',
  );

/** JSON without numbers: those that aren't written as integers come out as NaN. */
const { value: values } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: 'binary' }),
    fc.constantFrom(null, true, ':', '"', '\\', '":"', '{"a":1,"a":2}', '__proto__'),
    fc.integer(),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('__proto__', '', ':', '"', '0')), tie('value'), {
      maxKeys: 4,
    }),
  ),
}));

describe('parseJson', () => {
  it('agrees with JSON.parse, whatever strings and names contain', () => {
    fc.assert(
      fc.property(values, fc.constantFrom(0, 2, '\t'), (value, space) => {
        const text = JSON.stringify(value, null, space);
        assert.deepEqual(parse(text), JSON.parse(text));
      }),
      { numRuns: 1_000 },
    );
  });

  it('refuses a name that appears twice in an object, at any depth', () => {
    fc.assert(
      fc.property(
        values,
        values,
        fc.string(),
        fc.constantFrom('X', '[X]', '{"a":X}', '[1,{"b":[X]}]'),
        (one, two, name, around) => {
          const member = JSON.stringify(name);
          const twice = `{${member}:${JSON.stringify(one)},"\\u0000other":1,${member}:${JSON.stringify(two)}}`;
          refuses(around.replace('X', () => twice));
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('returns NaN for a number that is not written as an integer', () => {
    for (const text of ['1.0', '1e2', '1E+2', '1e400', '-1e400', '0.5', '-0.0', '1e-400']) {
      assert.ok(Number.isNaN(parse(text)), text);
      assert.deepEqual(parse(`[{"a":${text}}]`), [{ a: Number.NaN }]);
    }
    for (const text of ['0', '-0', '1', '-1', '9007199254740991', '9007199254740993']) {
      assert.equal(parse(text), Number(text));
    }
  });

  it('refuses more values or fields than allowed, and more than 32 levels of values', () => {
    const parseFew = (text: string) => () => parseJson(Buffer.from(text), { values: 5, fields: 3 });
    for (const text of ['[1,2,3,4]', '{"a":1,"b":[1,2]}', '[[[[1]]]]', '[[],[]]', '"[,,,,,,"'])
      assert.deepEqual(parseFew(text)(), JSON.parse(text));
    for (const text of ['[1,2,3,4,5]', '{"a":1,"b":[1,2,3]}', '[[[[[1]]]]]', '[[],[],[],[],[]]'])
      assert.throws(parseFew(text), /body must have at most 5 values/, text);
    assert.deepEqual(parseFew('{"a":1,"b":2,"c":{"d":3}}')(), { a: 1, b: 2, c: { d: 3 } });
    assert.throws(parseFew('{"a":1,"b":2,"c":3,"d":4}'), /must have at most 3 fields/);
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    assert.deepEqual(parse(nested(32)), JSON.parse(nested(32)));
    assert.throws(() => parse(nested(33)), /nested too deeply/);
  });

  const refusal = (bytes: Buffer): string => {
    try {
      parseJson(bytes);
    } catch (error) {
      return (error as Error).message;
    }
    return 'it is valid';
  };

  for (const [text, line, character] of [
    ['', 1, 1],
    ['{"amount": 5000,}', 1, 17],
    ['{"amount": 5000', 1, 16],
    ['{\n  "amount": 5000\n  "external_ref": "r"\n}', 3, 3],
    ['{"amount": 05}', 1, 13],
    ['{"amount": 5.}', 1, 13],
    ['{amount: 5}', 1, 2],
    ["{'amount': 5}", 1, 2],
    ['{"amount" 5}', 1, 11],
    ['{"amount": five}', 1, 12],
    ['{"a": "b\nc"}', 1, 7],
    ['{"a": "\\x"}', 1, 7],
    ['{"a": [1, 2}', 1, 12],
    ['{"a": [1,]}', 1, 10],
    ['[1]]', 1, 4],
    ['{} {}', 1, 4],
    ['amount=5000', 1, 1],
    ['['.repeat(60_000), 1, 60_001],
  ] as const) {
    it(`says where ${JSON.stringify(text.slice(0, 50))} stops being JSON, and does not repeat it`, () => {
      const place = `line ${line}, character ${character}`;
      assert.equal(refusal(Buffer.from(text)), `body must be valid JSON, and stops being so at ${place}`);
    });
  }

  it('tells bytes that are not UTF-8 and a byte order mark from bad JSON', () => {
    assert.equal(refusal(Buffer.from([0x22, 0xff, 0x22])), 'body must be UTF-8');
    assert.equal(refusal(Buffer.from('\ufeff{}')), 'body must not begin with a byte order mark');
  });
});
