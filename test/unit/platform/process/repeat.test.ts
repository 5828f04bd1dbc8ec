import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { pino } from 'pino';
import { repeat } from '../../../../platform/process/repeat.ts';

const HOUR_MS = 3_600_000;
const silent = pino({ level: 'silent' });

const tick = () => new Promise((resolve) => setImmediate(resolve));

/** As many turns of the event loop as it takes to work, and more. */
const settle = async () => {
  for (let i = 0; i < 10; i++) await tick();
};

describe('work that is repeated', () => {
  it('is done at once, and again when somebody wakes it: once for all who do so meanwhile', async () => {
    let count = 0;
    const { promise: isHeld, resolve: release } = Promise.withResolvers<void>();
    const repetition = repeat('the work', HOUR_MS, silent, async () => {
      count += 1;
      if (count === 2) await isHeld;
    });
    await settle();
    assert.equal(count, 1);
    repetition.wake();
    await settle();
    assert.equal(count, 2);
    repetition.wake();
    repetition.wake();
    await settle();
    assert.equal(count, 2);
    release();
    await settle();
    assert.equal(count, 3);
    await repetition.stop();
    assert.equal(count, 3);
  });

  it('is done again within the shortest of the times that were asked for, once for all', async () => {
    let count = 0;
    const repetition = repeat('the work', HOUR_MS, silent, async () => {
      count += 1;
    });
    await settle();
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      repetition.wakeWithin(HOUR_MS);
      repetition.wakeWithin(5_000);
      repetition.wakeWithin(HOUR_MS);
      mock.timers.tick(4_999);
      await settle();
      assert.equal(count, 1);
      mock.timers.tick(HOUR_MS);
      await settle();
      assert.equal(count, 2);
    } finally {
      mock.timers.reset();
    }
    await repetition.stop();
  });

  it('that has failed waits for its interval, whoever wakes it, and stops meanwhile', async () => {
    let count = 0;
    const lines: string[] = [];
    const logger = pino({ base: null, timestamp: false }, { write: (line: string) => lines.push(line) });
    const repetition = repeat('the work', HOUR_MS, logger, async () => {
      count += 1;
      throw new TypeError('no');
    });
    await settle();
    repetition.wake();
    await settle();
    assert.equal(count, 1);
    assert.equal(JSON.parse(lines[0] ?? '').msg, 'the work failed; trying again');
    await repetition.stop();
  });

  it('is told that it has to end, and is awaited', async () => {
    let hasEnded = false;
    const repetition = repeat('the work', HOUR_MS, silent, async (stopping) => {
      await new Promise<void>((resolve) => stopping.addEventListener('abort', () => resolve()));
      await tick();
      hasEnded = true;
    });
    await settle();
    await repetition.stop();
    assert.ok(hasEnded);
  });
});
