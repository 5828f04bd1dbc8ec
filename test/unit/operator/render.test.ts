import assert from 'node:assert/strict';
import { renderJson, renderText, visible } from '../../../operator/render.ts';

const HOSTILE = 'a\u001b[2J\u0007b\u009bc\u202ed\u2066e\u2028f\u{e0041}g\nh\u00ad';

describe("the operator's output", () => {
  it('contains nothing that a terminal would obey or that reverses text', () => {
    for (const text of [
      renderText({ value: { name: HOSTILE, nested: { list: [HOSTILE] } }, note: 'a note' }),
      renderText({ value: [{ name: HOSTILE }], columns: ['name'] }),
      renderJson({ value: { name: HOSTILE } }),
    ]) {
      assert.doesNotMatch(text.replaceAll('\n', ''), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      assert.match(
        text,
        /a\\u001b\[2J\\u0007b\\u009bc\\u202ed\\u2066e\\u2028f\\udb40\\udc41g\\(n|u000a)h\\u00ad/,
      );
    }
  });

  it('is valid JSON with the same data for programs', () => {
    assert.deepEqual(JSON.parse(renderJson({ value: { name: HOSTILE } })), { name: HOSTILE });
  });

  it('keeps the joiners in names and emoji', () => {
    assert.equal(visible('علی\u200cرضا 👩\u200d🚀'), 'علی\u200cرضا 👩\u200d🚀');
  });
});
