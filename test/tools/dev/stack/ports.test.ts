import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../../../../dev/free-port.ts';
import { choosePorts } from '../../../../dev/stack/ports.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';

describe('choosePorts', () => {
  const scratch = scratchFolder();
  const none = { postgres: undefined, temporal: undefined, temporalUi: undefined, worker: undefined };

  it('reuses the ports of the last run, except for one that is taken', async () => {
    const file = join(scratch.path, 'ports.json');
    const first = await choosePorts(file, none);
    assert.equal(new Set(Object.values(first)).size, 5);
    assert.deepEqual(await choosePorts(file, none), first);

    const other = createServer().listen(first.temporal, '127.0.0.1');
    await once(other, 'listening');
    const second = await choosePorts(file, none);
    other.close();
    assert.notEqual(second.temporal, first.temporal);
    assert.deepEqual([second.postgres, second.temporalUi], [first.postgres, first.temporalUi]);
  });

  it('chooses a port for the TRON node if one is wanted, and keeps it', async () => {
    const file = join(scratch.path, 'tron.json');
    assert.equal((await choosePorts(file, none)).tron, undefined);
    const { tron } = await choosePorts(file, { ...none, withTron: true });
    assert.ok(tron !== undefined);
    assert.equal((await choosePorts(file, { ...none, withTron: true })).tron, tron);
  });

  it('takes the requested ports, and refuses one that is taken', async () => {
    const file = join(scratch.path, 'asked.json');
    const asked = { ...none, temporalUi: await freePort() };
    assert.equal((await choosePorts(file, asked)).temporalUi, asked.temporalUi);
    const other = createServer().listen(asked.temporalUi, '127.0.0.1');
    await once(other, 'listening');
    await assert.rejects(choosePorts(file, asked), /port \d+ is taken: .* set TEMPORAL_UI_PORT/);
    other.close();
  });
});
