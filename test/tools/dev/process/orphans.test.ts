import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { processIdentity } from '../../../../dev/process/identity.ts';
import { ChildRegistry, stopOrphans } from '../../../../dev/process/orphans.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';

describe('stopOrphans', () => {
  const scratch = scratchFolder();

  it('leaves alone another process that has the pid of a recorded one', async () => {
    const stranger = spawn('sleep', ['600']);
    const pid = stranger.pid as number;
    const file = join(scratch.path, 'reused.json');
    await writeFile(file, JSON.stringify([{ name: 'worker', pid, identity: 'an earlier process' }]));
    const reports: string[] = [];
    await stopOrphans(new ChildRegistry(file), (line) => reports.push(line));
    assert.deepEqual(reports, []);
    assert.notEqual(processIdentity(pid), undefined);
    stranger.kill('SIGKILL');
  });
});
