import assert from 'node:assert/strict';
import { Label, Line } from '../../../domain/fields.ts';

const accepts = (schema: ReturnType<typeof Line>, text: string) => schema.safeParse(text).success;

describe('a label', () => {
  it('may be a name in any script, with joiners and emoji', () => {
    for (const text of [
      'Zoë',
      '李小龍',
      'علی\u200cرضا',
      'क्\u200dष',
      '👩\u200d🚀',
      '🏴',
      "O'Brien-Łęcki",
      '  x  ',
    ]) {
      assert.ok(accepts(Label(100), text), text);
    }
  });

  it('may not contain format characters of the basic plane, except for joiners, or the two separators', () => {
    const [label, line] = [Label(100), Line(100)];
    for (let point = 0; point <= 0xffff; point++) {
      const text = `a${String.fromCodePoint(point)}b`;
      const isUnseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(text);
      if (isUnseen && point !== 0x200c && point !== 0x200d) {
        assert.ok(!accepts(label, text), point.toString(16));
        assert.ok(!accepts(line, text), point.toString(16));
      } else if (/[\p{L}\p{N}\p{P}\p{S}\p{M}\p{Zs}]/u.test(String.fromCodePoint(point))) {
        assert.ok(accepts(label, text), point.toString(16));
        assert.ok(accepts(line, text), point.toString(16));
      }
    }
  });

  it('is measured in code points, as JSON Schema counts', () => {
    assert.ok(accepts(Label(3), '👩👩👩'));
    assert.ok(!accepts(Label(3), '👩👩👩👩'));
    assert.ok(!accepts(Label(3), ''));
  });
});

describe('a reference', () => {
  it('may not contain joiners either, so that references that look the same are the same', () => {
    for (const text of ['a\u200cb', 'a\u200db']) assert.ok(!accepts(Line(100), text));
    assert.ok(accepts(Line(100), 'order 17/ä'));
  });
});
