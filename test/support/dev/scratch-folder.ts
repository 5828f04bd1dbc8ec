import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder for one describe block, which everybody may enter and which is gone afterwards. */
export function scratchFolder(): { readonly path: string } {
  let path = '';
  before(async () => {
    path = await mkdtemp(join(tmpdir(), 'card-issuing-dev-'));
    await chmod(path, 0o755);
  });
  after(() => rm(path, { recursive: true, force: true }));
  return {
    get path() {
      return path;
    },
  };
}
