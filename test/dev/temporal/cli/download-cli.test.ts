import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { findTemporalSource } from '../../../../dev/temporal/find-temporal-source.ts';
import { emptySearch, writeCli } from '../../support/empty-search.ts';
import { scratchFolder } from '../../support/scratch-folder.ts';
import { writeScript } from '../../support/write-script.ts';

describe('downloadedCli', () => {
  const scratch = scratchFolder();
  let server: Server;
  let archiveStatus = 200;
  before(async () => {
    const packed = join(scratch.path, 'packed');
    await writeCli(join(packed, 'temporal'), '1.32.0');
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
    const search = { ...emptySearch(scratch.path), downloadUrl: downloadUrl() };
    await writeScript(join(search.searchPath, 'go'), 'echo go1.26.0');
    const found = await findTemporalSource(search);
    assert.match(found.label, /\(downloaded\), server 1\.32\.0/);
    const next = await findTemporalSource({ ...search, downloadUrl: 'http://127.0.0.1:9' });
    assert.match(next.label, /\(downloaded before\)/);
  });

  it('leaves nothing behind when it fails', async () => {
    archiveStatus = 500;
    const search = { ...emptySearch(scratch.path), downloadUrl: downloadUrl() };
    await assert.rejects(findTemporalSource(search), /HTTP 500/);
    await assert.rejects(findTemporalSource(search), /no download in/);
  });
});
