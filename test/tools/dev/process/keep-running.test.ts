import assert from 'node:assert/strict';
import { keepRunning } from '../../../../dev/process/keep-running.ts';
import { until } from '../../../support/until.ts';

/** Something that can be started, and ended from outside, as often as one likes. */
function thing(failures: number[] = []) {
  const log: string[] = [];
  let starts = 0;
  let end: (how: string) => void = () => {};
  return {
    log,
    starts: () => starts,
    end: (how: string) => end(how),
    start: async () => {
      starts++;
      if (failures.includes(starts)) throw new Error(`no luck at start ${starts}`);
      const { promise: exited, resolve } = Promise.withResolvers<string>();
      end = resolve;
      return { exited, stop: async () => resolve('told to') };
    },
    report: (line: string) => void log.push(line),
  };
}

describe('keepRunning', () => {
  it('restarts a process that ended by itself, and logs both', async () => {
    const it = thing();
    const kept = await keepRunning({ ...it, name: 'it' });
    it.end('signal SIGKILL');
    await until(
      'it was started again and both lines are logged',
      () => it.starts() === 2 && it.log.length === 2,
    );
    assert.deepEqual(it.log, ['it ended; starting it again in 0.5 s: signal SIGKILL', 'it is running again']);
    await kept.stop();
    assert.equal(it.starts(), 2);
  });

  it('waits twice as long after each failed start', async () => {
    const it = thing([2, 3]);
    const kept = await keepRunning({ ...it, name: 'it' });
    it.end('exit code 1');
    await until('it is running again', () => it.log.at(-1) === 'it is running again');
    assert.deepEqual(it.log, [
      'it ended; starting it again in 0.5 s: exit code 1',
      'it ended; starting it again in 1 s: no luck at start 2',
      'it ended; starting it again in 2 s: no luck at start 3',
      'it is running again',
    ]);
    await kept.stop();
  });

  it('throws to its caller if the first start fails', async () => {
    await assert.rejects(keepRunning({ ...thing([1]), name: 'it' }), /no luck at start 1/);
  });

  it('starts nothing once it is stopped, even in the middle of a wait', async () => {
    const it = thing();
    const kept = await keepRunning({ ...it, name: 'it' });
    it.end('exit code 1');
    await until('the failure is logged', () => it.log.length === 1);
    await kept.stop();
    assert.equal(it.starts(), 1);
  });
});
