import assert from 'node:assert/strict';
import { Email, Label, Line, Timestamp } from '../../../domain/fields.ts';

const accepts = (schema: ReturnType<typeof Line>, text: string) => schema.safeParse(text).success;

describe('a label', () => {
  it('may be a name in any script, with joiners and emoji', () => {
    const names = ['Zoë', '李小龍', 'علی\u200cرضا', 'क्\u200dष', "O'Brien-Łęcki", '  x  '];
    for (const text of [...names, '👩\u200d🚀', '🏴']) assert.ok(accepts(Label(100), text), text);
  });

  it('may not contain format characters of the basic plane, except for joiners, or the two separators', () => {
    const [label, line] = [Label(100), Line(100)];
    for (let point = 0; point <= 0xffff; point++) {
      const text = `a${String.fromCodePoint(point)}b`;
      const isUnseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(text);
      if (isUnseen && point !== 0x200c && point !== 0x200d) {
        assert.ok(!accepts(label, text), point.toString(16));
        assert.ok(!accepts(line, text), point.toString(16));
      } else if (/\p{Default_Ignorable_Code_Point}/u.test(text)) {
        assert.ok(!accepts(line, text), point.toString(16));
      } else if (/[\p{L}\p{N}\p{P}\p{S}\p{M}\p{Zs}]/u.test(String.fromCodePoint(point))) {
        assert.ok(accepts(label, text), point.toString(16));
        assert.ok(accepts(line, text), point.toString(16));
      }
    }
  });

  it('is not made of invisible characters alone', () => {
    for (const text of ['\u3164', '\ufe0f\u200d', '\u{e0061}', ' \u115f ', '   '])
      assert.ok(!accepts(Label(9), text), text);
    for (const text of ['❤\ufe0f', '🏴\u{e0067}\u{e007f}', ' . ']) assert.ok(accepts(Label(9), text), text);
  });

  it('is measured in code points, as JSON Schema counts', () => {
    assert.ok(accepts(Label(3), '👩👩👩'));
    assert.ok(!accepts(Label(3), '👩👩👩👩'));
    assert.ok(!accepts(Label(3), ''));
  });
});

describe('a timestamp', () => {
  for (const [text, time] of [
    ['2026-11-25T00:00:00Z', '2026-11-25T00:00:00.000Z'],
    ['2026-11-25T00:00Z', '2026-11-25T00:00:00.000Z'],
    ['2026-11-25T01:30+01:00', '2026-11-25T00:30:00.000Z'],
    ['2026-11-25T00:00:00.1234-01:00', '2026-11-25T01:00:00.123Z'],
  ] as const) {
    it(`may be ${text}`, () => {
      assert.equal(Timestamp.parse(text).toISOString(), time);
    });
  }

  it('needs a time of the calendar and a time zone', () => {
    const wrong = ['2026-11-25', '2026-11-25T00:00', '2026-02-30T00:00Z', '2026-11-25T24:00Z', '', 'x'];
    for (const text of wrong) {
      const { error } = Timestamp.safeParse(text);
      assert.match(error?.message ?? '', /must be an ISO 8601 timestamp with a time zone/, text);
      assert.doesNotMatch(error?.message ?? '', /%2B/);
    }
  });

  it('whose + became a space in a query is told so', () => {
    const texts = ['2026-11-25T00:00:00 01:00', '2026-11-25T00:00:00.000 01:00', '2026-11-25T00:00 01:00'];
    for (const text of texts)
      assert.match(Timestamp.safeParse(text).error?.message ?? '', /write it as %2B/, text);
  });
});

describe('a reference', () => {
  it('may not contain what cannot be seen, so that references that look the same are the same', () => {
    const unseen = ['\u200c', '\u200d', '\u{e0061}', '\ufe0f', '\u3164', '\u115f', '\u034f', '\u{1d173}'];
    for (const one of unseen) assert.ok(!accepts(Line(100), `a${one}b`));
    assert.ok(accepts(Line(100), 'order 17/ä'));
  });
});

describe('an e-mail address', () => {
  const label = (length: number) => 'a'.repeat(length);
  for (const [what, text, isAccepted] of [
    ['a plain one', 'ada@example.com', true],
    ['every character that a browser takes there', "!#$%&'*+-/=?^_`{|}~.09azAZ@example.com", true],
    ['dots anywhere in the local part', '.ada..l.@example.com', true],
    ['an internationalised domain as A-labels', 'ada@xn--bcher-kva.xn--p1ai', true],
    ['a domain of one label', 'ada@localhost', true],
    ['a domain of digits', 'ada@1.2', true],
    ['a local part of 64 characters', `${label(64)}@example.com`, true],
    ['a local part of 65', `${label(65)}@example.com`, false],
    ['a label of 63', `ada@${label(63)}.com`, true],
    ['a label of 64', `ada@${label(64)}.com`, false],
    ['254 characters', `ada@${label(62)}.${label(62)}.${label(62)}.${label(61)}`, true],
    ['255 characters', `ada@${label(62)}.${label(62)}.${label(62)}.${label(62)}`, false],
    ['a domain in its own script', 'ada@bücher.example', false],
    ['a local part in another script', 'адa@example.com', false],
    ['a quoted local part', '"ada l"@example.com', false],
    ['a space', 'ada @example.com', false],
    ['a line break', 'ada@example.com\n', false],
    ['two @', 'ada@l@example.com', false],
    ['no local part', '@example.com', false],
    ['no domain', 'ada@', false],
    ['an empty label', 'ada@example..com', false],
    ['a dot at the end', 'ada@example.com.', false],
    ['a label that begins with a hyphen', 'ada@-example.com', false],
    ['a label that ends with one', 'ada@example-.com', false],
    ['an address in brackets', 'ada@[192.0.2.1]', false],
    ['a name before it', 'Ada <ada@example.com>', false],
    ['nothing', '', false],
  ] as const) {
    it(`${isAccepted ? 'may be' : 'is not'} ${what}`, () => {
      assert.equal(Email.safeParse(text).success, isAccepted, text);
    });
  }
});
