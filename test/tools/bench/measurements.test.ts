import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { basename } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { testServers } from '../../support/servers.ts';

/** They also need a worker, and take minutes however few calls they make. */
const NEED_WORKER = ['costs', 'deposits', 'isolation', 'issuance', 'webhooks'];
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

describe('the measurements of `npm run bench` that need no worker', () => {
  it('run to their end and print figures, with a few calls each', async () => {
    const names = globSync('bench/*.ts', { cwd: ROOT })
      .map((file) => basename(file, '.ts'))
      .filter((name) => name !== 'main' && !NEED_WORKER.includes(name));
    const { address, namespace } = testServers().temporal;
    const child = spawn(process.execPath, ['bench/main.ts', ...names], {
      cwd: ROOT,
      env: {
        ...process.env,
        BENCH_SCALE: '0.002',
        TEMPORAL_ADDRESS: address,
        TEMPORAL_NAMESPACE: namespace,
      },
    });
    const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const [code, stdout, stderr] = await Promise.all([exited, text(child.stdout), text(child.stderr)]);
    assert.equal(code, 0, `${stdout}\n${stderr}`);
    for (const name of names) assert.match(stdout, new RegExp(`^# ${name}$[^#]*ratio`, 'm'));
    assert.doesNotMatch(stdout, /NaN|Infinity|undefined/);
  });
});
