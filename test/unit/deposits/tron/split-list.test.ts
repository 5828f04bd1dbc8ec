import assert from 'node:assert/strict';
import fc from 'fast-check';
import { splitList } from '../../../../deposits/tron/split-list.ts';
import { column } from '../../../support/column.ts';

async function partsOf(answer: string, chunkBytes = 1_000, maxPartBytes = 1_000) {
  const bytes = Buffer.from(answer);
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
  }
  const parts: { text: string; isItem: boolean }[] = [];
  for await (const part of splitList(chunks(), maxPartBytes)) parts.push(part);
  return parts;
}

const codeOf = (answer: string, maxPartBytes?: number) =>
  partsOf(answer, 7, maxPartBytes).then(
    () => null,
    (error) => error.code,
  );

describe('a list that is split as it arrives', () => {
  it('has the items that JSON.parse would find, wherever its chunks end', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue({ stringUnit: 'grapheme' })),
        fc.constantFrom(undefined, 2),
        fc.integer({ min: 1, max: 20 }),
        async (list, indent, chunkBytes) => {
          const text = JSON.stringify(list, null, indent);
          const parts = await partsOf(`\n${text} `, chunkBytes, 100_000);
          assert.deepEqual(
            parts.map((part) => JSON.parse(part.text)),
            JSON.parse(text),
          );
          assert.ok(parts.every(({ isItem }) => isItem));
        },
      ),
    ));

  it('is told from an answer that is no list', async () => {
    for (const text of ['{}', '{"Error":"a [list, of] things"}', 'closed [for now]', ' 5', ''])
      assert.deepEqual(await partsOf(text, 3), [{ text, isItem: false }]);
  });

  it('may be longer than what is kept of it, but no item may', async () => {
    const items = Array.from({ length: 50 }, (_, at) => `{"at":${at}}`);
    assert.deepEqual(column(await partsOf(`[${items}]`, 7, 20), 'text'), items);
    assert.equal(await codeOf(`[1,"${'a'.repeat(20)}"]`, 20), 'too_large');
    assert.equal(await codeOf(`{"${'a'.repeat(20)}":1}`, 20), 'too_large');
  });

  it('has to end, with nothing after it', async () => {
    for (const text of ['[', '[1', '[1,', '[{"a":1}', '["]', '[1]2', '[][]', '[1],'])
      assert.equal(await codeOf(text), 'not_json', text);
  });
});
