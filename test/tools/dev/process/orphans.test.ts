import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { processIdentity } from '../../../../dev/process/identity.ts';
import { ChildRegistry, stopOrphans } from '../../../../dev/process/orphans.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';

describe('stopOrphans', () => {
  const scratch = scratchFolder();

  it('stops the recorded processes, the last one first, and says so', async () => {
    const registry = new ChildRegistry(join(scratch.path, 'recorded.json'));
    const children = ['first', 'second'].map((name) => {
      const child = spawn('sleep', ['600']);
      registry.record(name, child.pid as number);
      return child;
    });
    const reports: string[] = [];
    await Promise.all([
      ...children.map((child) => once(child, 'exit')),
      stopOrphans(registry, (l) => reports.push(l)),
    ]);
    assert.deepEqual(
      reports.map((line) => line.split(' ')[1]),
      ['second', 'first'],
    );
    assert.deepEqual(registry.running(), []);
  });

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
