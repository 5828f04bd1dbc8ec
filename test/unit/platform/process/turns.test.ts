import assert from 'node:assert/strict';
import { Turns } from '../../../../platform/process/turns.ts';

function taking(turns: Turns, order: string[], line: string): Promise<() => void> {
  const taken = turns.take(line, null);
  // One that is still waiting at the end of its test is refused later, and nobody is interested.
  taken.then(
    () => order.push(line),
    () => {},
  );
  return taken;
}

const settled = () => new Promise(setImmediate);

describe('Turns', () => {
  it('give no line more than its share, and the other lines theirs', async () => {
    const turns = new Turns({ places: 4, each: 2 });
    const order: string[] = [];
    const flood = Array.from({ length: 100 }, () => taking(turns, order, 'flood'));
    await settled();
    assert.deepEqual(order, ['flood', 'flood']);
    await Promise.all([taking(turns, order, 'quiet'), taking(turns, order, 'quiet')]);
    assert.deepEqual(order.slice(2), ['quiet', 'quiet']);
    for (const turn of flood) (await turn)();
    assert.equal(order.length, 102);
  });

  it('go to one line after the other, and within a line to whoever came first', async () => {
    const turns = new Turns({ places: 1, each: 1 });
    const order: string[] = [];
    const leave = await turns.take('first', null);
    const waiting = ['a1', 'a2', 'a3', 'b1', 'c1', 'b2'].map((name) =>
      turns.take(name.slice(0, 1), null).then((end) => {
        order.push(name);
        end();
      }),
    );
    leave();
    await Promise.all(waiting);
    assert.deepEqual(order, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  it('are returned once, even if their holder returns them twice', async () => {
    const turns = new Turns({ places: 1, each: 1 });
    const order: string[] = [];
    const leave = await turns.take('a', null);
    leave();
    leave();
    await taking(turns, order, 'a');
    void taking(turns, order, 'b').catch(() => {});
    await settled();
    assert.deepEqual(order, ['a']);
  });

  it('are waited for up to the time limit, or until the caller gives up', async () => {
    const maxWait = { ms: 30, error: () => new Error('no turn in time') };
    const turns = new Turns({ places: 1, each: 1, maxWait });
    const leave = await turns.take('a', null);
    await assert.rejects(turns.take('a', null), /no turn in time/);
    const givenUp = new AbortController();
    const unwanted = turns.take('b', givenUp.signal);
    givenUp.abort(new Error('nobody waits for it'));
    await assert.rejects(unwanted, /nobody waits for it/);
    await assert.rejects(turns.take('b', givenUp.signal), /nobody waits for it/);
    leave();
    (await turns.take('c', null))();
  });
});
