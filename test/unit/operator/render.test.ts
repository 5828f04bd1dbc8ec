import assert from 'node:assert/strict';
import { renderJson, renderText, visible } from '../../../operator/render.ts';

const HOSTILE = 'a\u001b[2J\u0007b\u009bc\u202ed\u2066e\u2028f\u{e0041}g\nh\u00ad';

describe('what the operator reads', () => {
  it('has nothing in it that a terminal would obey, or that turns text around', () => {
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

  it('is the same JSON for programs', () => {
    assert.deepEqual(JSON.parse(renderJson({ value: { name: HOSTILE } })), { name: HOSTILE });
  });

  it('leaves the joiners of names and emoji alone', () => {
    assert.equal(visible('علی\u200cرضا 👩\u200d🚀'), 'علی\u200cرضا 👩\u200d🚀');
  });
});
