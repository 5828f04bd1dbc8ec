import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findTemporalSource, type TemporalSearch } from '../../../../dev/temporal/find-temporal-source.ts';
import { emptySearch, scratchFolder, writeCli, writeScript } from '../../../support/dev/scratch.ts';

/** What the search of a test has downloaded lies in it. */
const DOWNLOADED = `temporal-cli-1.9.1-${'0'.repeat(16)}`;

describe('findTemporalSource', () => {
  const scratch = scratchFolder();

  it('takes TEMPORAL_ADDRESS before anything else', async () => {
    const search = emptySearch(scratch.path);
    const temporalCli = await writeCli(join(search.searchPath, 'temporal'), '1.32.0');
    const found = await findTemporalSource({ ...search, temporalAddress: 'example:7233', temporalCli });
    assert.deepEqual([found.kind, found.kind === 'existing' && found.address], ['existing', 'example:7233']);
  });

  it('takes TEMPORAL_CLI next, then `temporal` on PATH, then an earlier download', async () => {
    const search = emptySearch(scratch.path);
    const named = await writeCli(join(scratch.path, 'named', 'temporal'), '1.33.0');
    const onPath = await writeCli(join(search.searchPath, 'temporal'), '1.32.0');
    const downloaded = await writeCli(join(search.cacheFolder, DOWNLOADED, 'temporal'), '2.0.1');
    const path = async (asked: TemporalSearch) => {
      const found = await findTemporalSource(asked);
      return found.kind === 'cli' ? found.path : found.kind;
    };
    assert.equal(await path({ ...search, temporalCli: named }), named);
    assert.equal(await path(search), onPath);
    await rm(onPath);
    assert.equal(await path(search), downloaded);
    assert.deepEqual(search.progress, []);
    await rm(downloaded);
    await assert.rejects(findTemporalSource(search), /no download in .*Install the Temporal CLI 1\.9/s);
  });

  it('skips a CLI that does not work or whose server is too old, and says so', async () => {
    const search = emptySearch(scratch.path);
    const old = await writeCli(join(search.searchPath, 'temporal'), '1.31.2');
    await writeScript(join(search.cacheFolder, DOWNLOADED, 'temporal'), 'exit 1');
    await assert.rejects(findTemporalSource(search), /there is no python3 on PATH/);
    assert.equal(
      search.progress[0],
      `Temporal: passing over ${old} (PATH): its server is 1.31.2, and 1.32 or newer is needed`,
    );
    assert.match(
      search.progress[1] ?? '',
      /temporal-cli-1\.9\.1-0{16}\/temporal \(downloaded before\) does not work/,
    );
  });

  it('fails for a TEMPORAL_CLI that does not work', async () => {
    const search = emptySearch(scratch.path);
    await writeCli(join(search.searchPath, 'temporal'), '1.32.0');
    await assert.rejects(
      findTemporalSource({ ...search, temporalCli: '/nowhere' }),
      /TEMPORAL_CLI is \/nowhere/,
    );
  });
});
