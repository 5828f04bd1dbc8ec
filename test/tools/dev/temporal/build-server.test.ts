import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findTemporalSource } from '../../../../dev/temporal/find-temporal-source.ts';
import { binariesIn, type TemporalSearch } from '../../../../dev/temporal/temporal-source.ts';
import { emptySearch, scratchFolder, writeScript } from '../../../support/dev/scratch.ts';

const SYSTEM_PATH = '/usr/bin:/bin';

describe('freshBuild', () => {
  const scratch = scratchFolder();
  /** Says when it begins; builds once a file allows it. */
  const go = (search: TemporalSearch, build: string) =>
    writeScript(
      join(search.searchPath.split(':')[0] as string, 'go'),
      `if [ "$1" = env ]; then echo go1.26.8; exit; fi\n${build}`,
    );
  const buildingSearch = () => {
    const search = emptySearch(scratch.path);
    return { ...search, searchPath: `${search.searchPath}:${SYSTEM_PATH}`, cliWheel: undefined };
  };

  it('builds once for two callers at the same time, under the official names, and shows its progress', async () => {
    const search = buildingSearch();
    const calls = join(scratch.path, 'calls');
    const allowed = join(scratch.path, 'allowed');
    await go(
      search,
      `echo "$@" >> ${calls}; until [ -e ${allowed} ]; do sleep 0.05; done; echo "binary of $4" > "$GOBIN/server"`,
    );
    search.onProgress = (line) => {
      search.progress.push(line);
      if (line.includes('another process is building')) writeFileSync(allowed, '');
    };
    const found = await Promise.all([findTemporalSource(search), findTemporalSource(search)]);
    assert.deepEqual(
      found.map(({ kind }) => kind),
      ['built', 'built'],
    );
    assert.equal((await readFile(calls, 'utf8')).trim().split('\n').length, 3);
    const binaries = binariesIn(join(search.cacheFolder, 'temporal-server-1.32.0'));
    assert.match(await readFile(binaries.server, 'utf8'), /go\.temporal\.io\/server\/cmd\/server@v1\.32\.0/);
    assert.match(await readFile(binaries.sqlTool, 'utf8'), /cmd\/tools\/sql@v1\.32\.0/);
    assert.match(await readFile(binaries.ui, 'utf8'), /ui-server\/v2\/cmd\/server@v2\.54\.1/);
    assert.ok(search.progress.some((line) => /building temporal-server from source \(1 of 3\)/.test(line)));
    assert.ok(search.progress.some((line) => /another process is building/.test(line)));
  });

  it('builds again after a build that failed half-way', async () => {
    const search = buildingSearch();
    await go(search, 'case "$4" in */sql@*) echo no space left; exit 1;; esac; echo x > "$GOBIN/server"');
    await assert.rejects(findTemporalSource(search), /building it from source failed(.|\n)*no space left/);
    await go(search, 'echo x > "$GOBIN/server"');
    assert.equal((await findTemporalSource(search)).kind, 'built');
  });
});
