import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseJson } from '../../../api/http/body.ts';
import { ApiError } from '../../../domain/api-error.ts';

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
});
