import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { tryLock } from '../../../../dev/process/files.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';

const MODULE = new URL('../../../../dev/process/files.ts', import.meta.url).href;

describe('tryLock', () => {
  const scratch = scratchFolder();

  it('gives the lock to one process at a time, and to the next one when the first is killed', async () => {
    const file = join(scratch.path, 'lock');
    const script = `
      import { tryLock } from ${JSON.stringify(MODULE)};
      console.log(tryLock(process.argv[1]) === undefined ? 'refused' : 'held');
      setInterval(() => {}, 1000);
    `;
    const holder = spawn(process.execPath, ['--input-type=module', '-e', script, file]);
    const [printed] = await once(holder.stdout, 'data');
    assert.equal(String(printed).trim(), 'held');
    assert.equal(tryLock(file), undefined);

    holder.kill('SIGKILL');
    await once(holder, 'exit');
    const lock = tryLock(file);
    assert.notEqual(lock, undefined);
    assert.equal(tryLock(file), undefined, 'nor twice in one process');
    lock?.release();
    const again = tryLock(file);
    assert.notEqual(again, undefined);
    again?.release();
  });
});
