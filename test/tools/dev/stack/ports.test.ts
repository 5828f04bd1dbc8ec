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
