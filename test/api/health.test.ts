import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { pino } from 'pino';
import { type RunningApi, startApi } from '../../api/server.ts';
import { freePort } from '../../dev/free-port.ts';
import { asOwner, createTestDatabase } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { testConfig } from '../support/stack.ts';
import { until } from '../support/until.ts';

describe('the API process', () => {
  let api: RunningApi | undefined;
  afterEach(async () => {
    await api?.stop();
    api = undefined;
  });

  const get = async (origin: string, path: string) => {
    const response = await fetch(new URL(path, origin));
    return { status: response.status, json: JSON.parse(await response.text()) };
  };
  const logLines: string[] = [];
  const startAlone = async (overrides: Parameters<typeof testConfig>[0]) => {
    const config = await testConfig(overrides);
    logLines.length = 0;
    api = await startApi(config, pino({}, { write: (line: string) => logLines.push(line) }));
    return api.url;
  };

  it('answers GET /healthz and GET /readyz without a key, with what answers and who polls the task queues', async () => {
    const { config } = await sharedStack();
    const url = `http://${config.host}:${config.port}`;
    assert.deepEqual(await get(url, '/healthz'), { status: 200, json: { status: 'ok' } });
    const queues = ['cards', 'webhooks'].map((name) => `${config.taskQueuePrefix}${name}`);
    // A worker that has just been started has yet to poll.
    const { status, json } = await until('a worker polls', async () => {
      const answer = await get(url, '/readyz');
      return queues.every((queue) => answer.json.workers[queue] >= 1) && answer;
    });
    assert.deepEqual([status, json.status, json.problems, json.scan], [200, 'ready', {}, null]);
    assert.deepEqual(Object.keys(json.workers), queues);
  });

  it('names Temporal in GET /readyz if its port is closed, and still answers', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const url = await startAlone({ temporal: { connectionOptions: { address }, namespace: 'default' } });
    const { status, json } = await get(url, '/readyz');
    // Neither the place nor the library's message is in the response; both are in the log.
    assert.deepEqual(
      [status, json.status, json.problems],
      [503, 'not_ready', { temporal: 'is unreachable' }],
    );
    assert.ok(logLines.some((line) => line.includes('"part":"temporal"')));
    assert.deepEqual(json.workers, {});
    assert.equal((await get(url, '/healthz')).status, 200);
    // Load balancers ask this: reads and test mode work without Temporal.
    assert.deepEqual(await get(url, '/servez'), { status: 200, json: { status: 'serving', problems: {} } });
    const metrics = await (await fetch(new URL('/metrics', url))).text();
    assert.match(metrics, /^dependency_reachable\{dependency="postgresql"\} 1$/m);
    assert.match(metrics, /^dependency_reachable\{dependency="temporal"\} 0$/m);
  });

  it('names PostgreSQL in GET /readyz if nothing listens there', async () => {
    const databaseUrl = `postgres://nobody:secret-password@127.0.0.1:${await freePort()}/none`;
    const url = await startAlone({ databaseUrl });
    const problems = { postgresql: 'is unreachable' };
    const { status, json } = await get(url, '/readyz');
    assert.deepEqual([status, json.problems], [503, problems]);
    assert.deepEqual(await get(url, '/servez'), { status: 503, json: { status: 'not_serving', problems } });
    const logged = logLines.filter((line) => line.includes('"part":"postgresql"')).join();
    assert.match(logged, /ECONNREFUSED/);
    assert.doesNotMatch(logged, /secret-password/);
  });

  it('serves readiness and metrics only at their own address if there is one, and /healthz at both', async () => {
    const operations = { host: '127.0.0.1', port: await freePort() };
    const url = await startAlone({ operations, drainDelayMs: 3_000 });
    const apart = `http://${operations.host}:${operations.port}`;
    for (const path of ['/readyz', '/servez', '/metrics']) {
      assert.equal((await fetch(new URL(path, apart))).status, 200, path);
      const { status, json } = await get(url, path);
      assert.deepEqual([status, json.error.code], [404, 'not_found'], path);
    }
    assert.deepEqual(Object.values((await get(apart, '/readyz')).json.workers), [0, 0], 'its work waits');
    for (const origin of [url, apart]) assert.equal((await get(origin, '/healthz')).status, 200);
    for (const path of ['/v1/ping', '/docs', '/openapi.json', '/network/callbacks']) {
      assert.equal((await get(apart, path)).json.error.code, 'not_found', path);
    }
    assert.equal((await get(url, '/v1/ping')).json.error.code, 'invalid_api_key');

    // From the moment it stops, it is not ready, and still serves and closes its connections.
    const stopped = api?.stop();
    api = undefined;
    const [ready, serving, response] = await Promise.all([
      get(apart, '/readyz'),
      get(apart, '/servez'),
      fetch(new URL('/healthz', url)),
    ]);
    assert.deepEqual([ready.status, ready.json.problems], [503, { process: 'is stopping' }]);
    assert.equal(serving.status, 503);
    assert.deepEqual([response.status, response.headers.get('connection')], [200, 'close']);
    await stopped;
    for (const origin of [url, apart]) await assert.rejects(fetch(origin), TypeError);
  });

  it('answers GET /readyz even if a server accepts its connection and says nothing', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as { port: number };
    try {
      const url = await startAlone({ databaseUrl: `postgres://nobody@127.0.0.1:${port}/none` });
      const { status, json } = await get(url, '/readyz');
      assert.deepEqual([status, Object.keys(json.problems)], [503, ['postgresql']]);
    } finally {
      silent.close();
    }
  });

  it('names missing migrations and functions in GET /readyz, and none that was replaced', async () => {
    const databaseUrl = await createTestDatabase();
    await asOwner(databaseUrl, [
      `DELETE FROM schema_migration WHERE name LIKE '0003%'`,
      `UPDATE schema_function SET sha256 = sha256('another') WHERE name = 'id_time'`,
      `INSERT INTO schema_function SELECT name, sha256('a later one'), clock_timestamp() FROM schema_function
       WHERE name = 'account_now'`,
    ]);
    const url = await startAlone({ databaseUrl });
    const { status, json } = await get(url, '/readyz');
    assert.deepEqual([status, Object.keys(json.problems)], [503, ['postgresql']]);
    assert.equal((await get(url, '/servez')).status, 503);
    assert.match(json.problems.postgresql, /lacks 0003_\w+, id_time: run "npm run migrate"/);
  });

  it('counts requests by route and status in GET /metrics, in the text format and without ids or keys', async () => {
    const stack = await sharedStack();
    const partner = await stack.createPartner();
    const card = 'card_00000000000000000000000000';
    await partner.call('GET', `/cards/${card}`);
    const counted =
      /^http_request_duration_seconds_count\{method="GET",route="\/v1\/cards\/:cardId",status="404"\} \d+$/m;
    // What another test has asked within the last second is answered again.
    const { response, text } = await until('the answer', async () => {
      const response = await fetch(`http://${stack.config.host}:${stack.config.port}/metrics`);
      const text = await response.text();
      return counted.test(text) && { response, text };
    });
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
    assert.match(text, /^process_cpu_seconds_total /m);
    assert.ok(!text.includes(card) && !text.includes(partner.id) && !text.includes(partner.keys.test));
  });
});
