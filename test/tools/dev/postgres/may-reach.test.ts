import assert from 'node:assert/strict';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { mayReach } from '../../../../dev/postgres/run-as.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';

describe('mayReach', () => {
  const scratch = scratchFolder();
  const stranger = { uid: 54_321, gid: 54_321 };

  it('is true only if every folder on the path lets the user through', async () => {
    const inner = join(scratch.path, 'outer', 'inner');
    await mkdir(inner, { recursive: true });
    await chmod(inner, 0o711);
    await chmod(join(scratch.path, 'outer'), 0o711);
    assert.equal(await mayReach(stranger, inner), true);
    await chmod(join(scratch.path, 'outer'), 0o700);
    assert.equal(await mayReach(stranger, inner), false);
    const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    assert.equal(await mayReach(owner, inner), true);
  });
});
