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

  it('has no table wider than 120 columns: what does not fit is below its row', () => {
    const columns = ['created', 'id', 'card_id', 'merchant.name', 'reason', 'other', 'none'];
    const item = {
      ...{ created: '2026-11-20T08:00:00.000Z', id: 'i'.repeat(40), card_id: 'c'.repeat(40) },
      ...{ merchant: { name: 'Café' }, reason: 'r'.repeat(60), other: 'o'.repeat(40), none: null },
    };
    const [head, ...lines] = renderText({ value: [item, { ...item, merchant: null }], columns }).split('\n');
    assert.match(head ?? '', /^CREATED +ID +CARD_ID$/);
    const row = `${item.created}  ${item.id}  ${item.card_id}`;
    assert.deepEqual(lines, [
      ...[row, `    merchant.name: Café  reason: ${item.reason}`, `    other: ${item.other}`],
      ...[row, `    reason: ${item.reason}`, `    other: ${item.other}`],
      '',
    ]);
    const short = renderText({
      value: [{ id: 'a', merchant: { name: 'Café' } }],
      columns: ['id', 'merchant.name'],
    });
    assert.equal(short, 'ID  MERCHANT.NAME\na   Café\n');
  });

  it('keeps the joiners in names and emoji', () => {
    assert.equal(visible('علی\u200cرضا 👩\u200d🚀'), 'علی\u200cرضا 👩\u200d🚀');
  });
});
