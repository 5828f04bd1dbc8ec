import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { binariesIn } from '../../../dev/temporal/built/server-binaries.ts';
import { findTemporalSource, type TemporalSearch } from '../../../dev/temporal/find-temporal-source.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { writeScript } from '../support/write-script.ts';

const SYSTEM_PATH = '/usr/bin:/bin';

describe('findTemporalSource', () => {
  const scratch = scratchFolder();
  let cases = 0;
  let progress: string[];

  /** A search of its own, in which nothing can be found. */
  const emptySearch = (): TemporalSearch => {
    progress = [];
    return {
      searchPath: join(scratch.path, `bin-${++cases}`),
      cacheFolder: join(scratch.path, `cache-${cases}`),
      downloadUrl: 'http://127.0.0.1:9',
      onProgress: (line) => progress.push(line),
    };
  };
  const cli = (path: string, server: string) =>
    writeScript(path, `echo 'temporal version 1.0.0 (Server ${server}, UI 2.0.0)'`);

  it('takes TEMPORAL_ADDRESS before anything else', async () => {
    const search = emptySearch();
    const temporalCli = await cli(join(search.searchPath, 'temporal'), '1.32.0');
    const found = await findTemporalSource({ ...search, temporalAddress: 'example:7233', temporalCli });
    assert.deepEqual([found.kind, found.kind === 'existing' && found.address], ['existing', 'example:7233']);
  });

  it('then TEMPORAL_CLI, then `temporal` on PATH, then an earlier download, then an earlier build', async () => {
    const search = emptySearch();
    const named = await cli(join(scratch.path, 'named', 'temporal'), '1.33.0');
    const onPath = await cli(join(search.searchPath, 'temporal'), '1.32.0');
    const downloaded = await cli(join(search.cacheFolder, 'temporal-cli', 'temporal'), '2.0.1');
    const build = join(search.cacheFolder, 'temporal-server-1.32.0');
    await mkdir(build);
    const path = async (asked: TemporalSearch) => {
      const found = await findTemporalSource(asked);
      return found.kind === 'cli' ? found.path : found.kind === 'built' ? found.binaries.server : found.kind;
    };
    assert.equal(await path({ ...search, temporalCli: named }), named);
    assert.equal(await path(search), onPath);
    await rm(onPath);
    assert.equal(await path(search), downloaded);
    await rm(downloaded);
    assert.equal(await path(search), join(build, 'temporal-server'));
    assert.deepEqual(progress, []);
  });

  it('passes over a CLI whose server is too old, or which does not work, with a word', async () => {
    const search = emptySearch();
    const old = await cli(join(search.searchPath, 'temporal'), '1.31.2');
    await writeScript(join(search.cacheFolder, 'temporal-cli', 'temporal'), 'exit 1');
    const build = join(search.cacheFolder, 'temporal-server-1.32.0');
    await mkdir(build);
    assert.equal((await findTemporalSource(search)).kind, 'built');
    assert.equal(
      progress[0],
      `Temporal: passing over ${old} (PATH): its server is 1.31.2, and 1.32 or newer is needed`,
    );
    assert.match(progress[1] ?? '', /temporal-cli\/temporal \(downloaded before\) does not work/);
  });

  it('does not overlook a TEMPORAL_CLI that does not work', async () => {
    const search = emptySearch();
    await cli(join(search.searchPath, 'temporal'), '1.32.0');
    await assert.rejects(
      findTemporalSource({ ...search, temporalCli: '/nowhere' }),
      /TEMPORAL_CLI is \/nowhere/,
    );
  });

  it('names each way tried and what to install when there is nothing', async () => {
    await assert.rejects(findTemporalSource(emptySearch()), (error: Error) => {
      for (const way of [
        'TEMPORAL_ADDRESS',
        'TEMPORAL_CLI',
        'PATH',
        'no download',
        'no build',
        'downloaded from',
        '`go`',
      ]) {
        assert.ok(error.message.includes(way), `${way} in ${error.message}`);
      }
      assert.match(error.message, /Install the Temporal CLI 1\.9 or newer .*Go 1\.26 or newer/);
      return true;
    });
  });

  it('says that a Go is too old to build with', async () => {
    const search = emptySearch();
    await writeScript(join(search.searchPath, 'go'), 'echo go1.25.9');
    await assert.rejects(findTemporalSource(search), /Go is 1\.25\.9, and 1\.26 or newer is needed/);
  });

  describe('downloading', () => {
    let server: Server;
    let archiveStatus = 200;
    before(async () => {
      const packed = join(scratch.path, 'packed');
      await cli(join(packed, 'temporal'), '1.32.0');
      execFileSync('tar', ['-czf', join(scratch.path, 'cli.tar.gz'), '-C', packed, 'temporal']);
      const archive = await readFile(join(scratch.path, 'cli.tar.gz'));
      server = createServer((request, response) => {
        const { port } = server.address() as AddressInfo;
        if (request.url?.startsWith('/cli/latest?')) {
          response.end(
            JSON.stringify({ archiveUrl: `http://127.0.0.1:${port}/a.tar.gz`, fileToExtract: 'temporal' }),
          );
        } else response.writeHead(archiveStatus).end(archive);
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    });
    after(() => new Promise((resolve) => server.close(resolve)));
    const downloadUrl = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

    it('comes before building, and is there for the next time', async () => {
      const search = { ...emptySearch(), downloadUrl: downloadUrl() };
      await writeScript(join(search.searchPath, 'go'), 'echo go1.26.0');
      const found = await findTemporalSource(search);
      assert.match(found.label, /\(downloaded\), server 1\.32\.0/);
      const next = await findTemporalSource({ ...search, downloadUrl: 'http://127.0.0.1:9' });
      assert.match(next.label, /\(downloaded before\)/);
    });

    it('leaves nothing behind when it fails', async () => {
      archiveStatus = 500;
      const search = { ...emptySearch(), downloadUrl: downloadUrl() };
      await assert.rejects(findTemporalSource(search), /HTTP 500/);
      await assert.rejects(findTemporalSource(search), /no download in/);
    });
  });

  describe('building', () => {
    /** Says when it begins; builds once a file allows it. */
    const go = (search: TemporalSearch, build: string) =>
      writeScript(
        join(search.searchPath.split(':')[0] as string, 'go'),
        `if [ "$1" = env ]; then echo go1.26.8; exit; fi\n${build}`,
      );
    const buildingSearch = (): TemporalSearch => {
      const search = emptySearch();
      return { ...search, searchPath: `${search.searchPath}:${SYSTEM_PATH}` };
    };

    it('is done once by two who come at the same time, under the official names, with its progress shown', async () => {
      const search = buildingSearch();
      const calls = join(scratch.path, 'calls');
      await go(search, `echo "$@" >> ${calls}; sleep 0.3; echo "binary of $4" > "$GOBIN/server"`);
      const found = await Promise.all([findTemporalSource(search), findTemporalSource(search)]);
      assert.deepEqual(
        found.map(({ kind }) => kind),
        ['built', 'built'],
      );
      assert.equal((await readFile(calls, 'utf8')).trim().split('\n').length, 3);
      const binaries = binariesIn(join(search.cacheFolder, 'temporal-server-1.32.0'));
      assert.match(
        await readFile(binaries.server, 'utf8'),
        /go\.temporal\.io\/server\/cmd\/server@v1\.32\.0/,
      );
      assert.match(await readFile(binaries.sqlTool, 'utf8'), /cmd\/tools\/sql@v1\.32\.0/);
      assert.match(await readFile(binaries.ui, 'utf8'), /ui-server\/v2\/cmd\/server@v2\.54\.1/);
      assert.ok(progress.some((line) => /building temporal-server from source \(1 of 3\)/.test(line)));
      assert.ok(progress.some((line) => /another process is building/.test(line)));
    });

    it('is tried again after it failed half way', async () => {
      const search = buildingSearch();
      await go(search, 'case "$4" in */sql@*) echo no space left; exit 1;; esac; echo x > "$GOBIN/server"');
      await assert.rejects(findTemporalSource(search), /building it from source failed(.|\n)*no space left/);
      await go(search, 'echo x > "$GOBIN/server"');
      assert.equal((await findTemporalSource(search)).kind, 'built');
    });
  });
});
