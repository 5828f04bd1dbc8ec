import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startChild } from '../../../../dev/process/child.ts';
import { processIdentity } from '../../../../dev/process/identity.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';
import { until } from '../../../support/until.ts';

describe('startChild', () => {
  const scratch = scratchFolder();
  const start = (script: string) =>
    startChild({
      name: 'child',
      command: 'sh',
      args: ['-c', script],
      logFile: join(scratch.path, 'child.log'),
    });

  it("writes the child's output to its log, and reports how it ended", async () => {
    // It is opened for appending, at the latest when something is written.
    await writeFile(join(scratch.path, 'child.log'), '');
    const child = await start('echo out; echo err >&2; exit 7');
    assert.equal(await child.exited, 'exit code 7');
    await until('it has printed two lines', () => child.lastLines().length === 2);
    assert.deepEqual(child.lastLines().sort(), ['err', 'out']);
    await until('its log is written', async () => {
      const log = await readFile(join(scratch.path, 'child.log'), 'utf8');
      return log.includes('out\n') && log.includes('err\n');
    });
  });

  it('fails for a program that does not exist', async () => {
    const options = { name: 'nothing', command: join(scratch.path, 'nothing'), args: [] };
    await assert.rejects(
      startChild({ ...options, logFile: join(scratch.path, 'l') }),
      /nothing could not be started/,
    );
  });

  it('stops a child with the first signal if it obeys', async () => {
    const child = await start('trap "exit 3" TERM; echo ready; while :; do sleep 0.05; done');
    await until('it is ready', () => child.lastLines().includes('ready'));
    await child.stop([{ signal: 'SIGTERM', graceMs: 10_000 }]);
    assert.equal(await child.exited, 'exit code 3');
  });

  it('kills a child that obeys no signal', async () => {
    const child = await start('trap "" TERM INT; echo ready; while :; do sleep 0.05; done');
    await until('it is ready', () => child.lastLines().includes('ready'));
    await child.stop([
      { signal: 'SIGTERM', graceMs: 100 },
      { signal: 'SIGINT', graceMs: 100 },
    ]);
    assert.equal(await child.exited, 'signal SIGKILL');
  });

  it('ends its children when the process exits without having stopped them', async () => {
    const script = `
      import { startChild } from ${JSON.stringify(new URL('../../../../dev/process/child.ts', import.meta.url).href)};
      const child = await startChild({ name: 'c', command: 'sleep', args: ['600'], logFile: process.argv[1] });
      process.on('SIGTERM', () => process.exit(1));
      console.log(child.pid);
    `;
    const parent = spawn(process.execPath, [
      '--input-type=module',
      '-e',
      script,
      join(scratch.path, 'c.log'),
    ]);
    const [printed] = await once(parent.stdout, 'data');
    const pid = Number(printed);
    assert.notEqual(processIdentity(pid), undefined);
    parent.kill('SIGTERM');
    await until('the process is gone', () => processIdentity(pid) === undefined);
  });
});
