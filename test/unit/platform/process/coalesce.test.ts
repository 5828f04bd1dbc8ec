import assert from 'node:assert/strict';
import { coalesce } from '../../../../platform/process/coalesce.ts';
import { column } from '../../../support/column.ts';

const nextTurn = () => new Promise(setImmediate);

/** Notes the batches, whose results are what `each` makes of an item. */
function noting<Item, Result>(
  each: (item: Item) => Result | Promise<Result>,
  options: { maxTogether?: number; maxUnderWay?: number; laneOf?: (item: Item) => string } = {},
) {
  const batches: Item[][] = [];
  const send = coalesce<Item, Result>({
    maxTogether: 10,
    ...options,
    async run(items) {
      batches.push([...items]);
      return items.map(each);
    },
  });
  return { batches, send };
}
const laneOf = (item: string) => item.charAt(0);

describe('coalesce', () => {
  it('runs items that arrive in one turn together, and gives each its own result', async () => {
    const { batches, send } = noting((item: number) => item * 2);
    assert.deepEqual(await Promise.all([1, 2, 3].map(send)), [2, 4, 6]);
    assert.deepEqual(batches, [[1, 2, 3]]);
  });

  it('keeps items that arrive during a batch for the next one, up to the largest batch', async () => {
    const batches: number[][] = [];
    const goOn = Promise.withResolvers<void>();
    const send = coalesce<number, void>({
      maxTogether: 2,
      async run(items) {
        batches.push([...items]);
        await goOn.promise;
        return items.map(() => undefined);
      },
    });
    const first = send(1);
    await nextTurn();
    const later = [2, 3, 4].map(send);
    await nextTurn();
    assert.deepEqual(batches, [[1]]);
    goOn.resolve();
    await Promise.all([first, ...later]);
    assert.deepEqual(batches, [[1], [2, 3], [4]]);
  });

  it('rejects every item of a failed batch, and goes on with the next one', async () => {
    const send = coalesce<string, string>({
      maxTogether: 10,
      async run(items) {
        if (items.includes('bad')) throw new Error('no batch');
        return items;
      },
    });
    const outcomes = await Promise.allSettled(['good', 'bad'].map(send));
    assert.deepEqual(column(outcomes, 'status'), ['rejected', 'rejected']);
    assert.equal(await send('good'), 'good');
  });

  it('starts another batch while results of one are outstanding, but not in their lanes', async () => {
    const late = Promise.withResolvers<string>();
    const { batches, send } = noting((item: string) => (item === 'a1' ? late.promise : item), { laneOf });
    const first = send('a1');
    await nextTurn();
    const second = send('a2');
    assert.equal(await send('b1'), 'b1');
    assert.deepEqual(batches, [['a1'], ['b1']]);
    late.resolve('at last');
    assert.deepEqual(await Promise.all([first, second]), ['at last', 'a2']);
  });

  it('divides the lanes among the batches that may run at once', async () => {
    const { batches, send } = noting((item: string) => item, { maxUnderWay: 2, laneOf });
    await Promise.all(['a1', 'b1', 'a2', 'c1', 'd1'].map(send));
    assert.deepEqual(batches, [
      ['a1', 'a2', 'b1'],
      ['c1', 'd1'],
    ]);
  });
});
