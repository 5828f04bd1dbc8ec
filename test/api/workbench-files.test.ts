import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Koa from 'koa';
import { pino } from 'pino';
import { respondWithErrors } from '../../api/http/errors.ts';
import type { RequestState } from '../../api/http/log-request.ts';
import { workbenchFiles } from '../../api/workbench-files.ts';

describe("the workbench's files", () => {
  let folder: string;
  let server: Server;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'workbench-'));
    await mkdir(join(folder, 'assets'));
    await writeFile(join(folder, 'index.html'), '<!doctype html><title>Workbench</title>');
    await writeFile(join(folder, 'assets', 'main-1a2b.js'), 'x'.repeat(1_000));
    await writeFile(join(folder, '..', 'secret.txt'), 'secret');
    server = await serve(folder);
  });
  after(async () => {
    server.close();
    await rm(folder, { recursive: true });
    await rm(join(tmpdir(), 'secret.txt'), { force: true });
  });

  async function serve(from: string): Promise<Server> {
    const app = new Koa<RequestState>();
    app.use(async (ctx, next) => {
      ctx.state.requestId = 'req';
      ctx.state.logFields = {};
      ctx.set('Cache-Control', 'no-store');
      await next();
    });
    app.use(respondWithErrors(pino({ level: 'silent' })));
    app.use(workbenchFiles(from).routes());
    const listening = createServer(app.callback());
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
    return listening;
  }
  const get = (path: string, at = server) => {
    const { port } = at.address() as AddressInfo;
    return fetch(`http://127.0.0.1:${port}${path}`, { redirect: 'manual' });
  };

  it('are its page on every path that is no file', async () => {
    for (const path of [
      '/workbench/',
      '/workbench/cards',
      '/workbench/cards/card_1?status=active',
      '/workbench/%2e%2e%2fsecret.txt',
    ]) {
      const response = await get(path);
      assert.equal(response.status, 200, path);
      assert.match(await response.text(), /<title>Workbench/);
      assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8');
      assert.equal(response.headers.get('cache-control'), 'no-store');
      const policy = response.headers.get('content-security-policy') ?? '';
      assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
      assert.doesNotMatch(policy, /unsafe|\*|http/);
    }
    const { status, headers } = await get('/workbench');
    assert.deepEqual([status, headers.get('location')], [308, '/workbench/']);
  });

  it('are kept for good if their names have a hash, and one that is gone is no page', async () => {
    const response = await get('/workbench/assets/main-1a2b.js');
    assert.equal((await response.text()).length, 1_000);
    assert.equal(response.headers.get('cache-control'), 'public, max-age=31536000, immutable');
    assert.equal(response.headers.get('content-encoding'), 'gzip');
    assert.equal((await get('/workbench/assets/main-old.js')).status, 404);
  });

  it('are a 404 that says what to do if they are not built', async () => {
    const unbuilt = await serve(join(folder, 'none'));
    try {
      const response = await get('/workbench/', unbuilt);
      assert.equal(response.status, 404);
      assert.match(await response.text(), /The pages of the workbench are not built/);
    } finally {
      unbuilt.close();
    }
  });
});
