import assert from 'node:assert/strict';
import fc from 'fast-check';
import { mergeTimeline } from '../../../workbench/timeline.ts';

interface Line {
  id: string;
  created: string;
}

const at = (second: number) => new Date(1_700_000_000_000 + second * 1_000).toISOString();
const newestFirst = (a: Line, b: Line) => b.created.localeCompare(a.created) || b.id.localeCompare(a.id);

describe("a card's timeline", () => {
  const lists = fc.array(fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 12 }), {
    minLength: 1,
    maxLength: 5,
  });

  it('is read to its end page by page, in order, and never changes what it has shown', () => {
    fc.assert(
      fc.property(lists, fc.integer({ min: 1, max: 4 }), (secondsOfLists, pageSize) => {
        const all = secondsOfLists.map((seconds, list) =>
          seconds.map((second, n) => ({ id: `${list}-${n}`, created: at(second) })).sort(newestFirst),
        );
        const read = all.map(() => pageSize);
        let shown: Line[] = [];
        for (let round = 0; ; round++) {
          assert.ok(round < 100, 'it does not end');
          const sources = all.map((rows, list) => ({
            rows: rows.slice(0, read[list]),
            hasNextPage: (read[list] ?? 0) < rows.length,
          }));
          const { rows, hasOlder, end } = mergeTimeline<Line>(sources);
          const before = new Set(shown.map(({ id }) => id));
          assert.deepEqual(
            rows.filter(({ id }) => before.has(id)),
            shown,
          );
          const oldestBefore = shown.at(-1)?.created ?? at(1_000);
          for (const row of rows) if (!before.has(row.id)) assert.ok(row.created <= oldestBefore);
          shown = rows;
          if (!hasOlder) break;
          for (const [list, { rows: some, hasNextPage }] of sources.entries())
            if (hasNextPage && (some.at(-1)?.created ?? '') >= end) read[list] = (read[list] ?? 0) + pageSize;
        }
        assert.deepEqual(shown, all.flat().sort(newestFirst));
      }),
    );
  });

  it('is empty before anything was read', () => {
    assert.deepEqual(mergeTimeline([{ rows: undefined, hasNextPage: false }]).rows, []);
  });
});
