import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import pg from 'pg';
import { pino } from 'pino';
import { type RunningApi, startApi } from '../../api/start-api.ts';
import { freePort } from '../../dev/free-port.ts';
import { testConfig } from '../support/stack.ts';
import { sharedStack } from './support/shared-stack.ts';

describe('health', () => {
  let api: RunningApi | undefined;
  afterEach(async () => {
    await api?.stop();
    api = undefined;
  });

  const get = async (origin: string, path: string) => {
    const response = await fetch(new URL(path, origin));
    return { status: response.status, json: JSON.parse(await response.text()) };
  };
  const startAlone = async (overrides: Parameters<typeof testConfig>[0]) => {
    const config = await testConfig(overrides);
    api = await startApi(config, pino({ level: 'silent' }));
    return api.url;
  };

  it('GET /healthz says that the process answers, without a key', async () => {
    const { config } = await sharedStack();
    assert.deepEqual(await get(`http://${config.host}:${config.port}`, '/healthz'), {
      status: 200,
      json: { status: 'ok' },
    });
  });

  it('GET /readyz says that everything answers, and who polls the task queue', async () => {
    const { config } = await sharedStack();
    const { status, json } = await get(`http://${config.host}:${config.port}`, '/readyz');
    assert.equal(status, 200);
    assert.deepEqual([json.status, json.problems], ['ready', {}]);
    const queues = ['cards', 'webhooks'].map((name) => `${config.taskQueuePrefix}${name}`);
    assert.deepEqual(Object.keys(json.workers), queues);
    for (const queue of queues) assert.ok(json.workers[queue] >= 1, queue);
  });

  it('GET /readyz is ready without a worker: what it would do waits', async () => {
    const url = await startAlone({});
    const { status, json } = await get(url, '/readyz');
    assert.equal(status, 200);
    assert.deepEqual(Object.values(json.workers), [0, 0]);
  });

  it('GET /readyz names Temporal where its port is closed, and the process still answers', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const url = await startAlone({ temporal: { connectionOptions: { address }, namespace: 'default' } });
    const { status, json } = await get(url, '/readyz');
    assert.equal(status, 503);
    assert.equal(json.status, 'not_ready');
    assert.deepEqual(Object.keys(json.problems), ['temporal']);
    assert.deepEqual(json.workers, {});
    assert.equal((await get(url, '/healthz')).status, 200);
  });

  it('GET /readyz names PostgreSQL where nothing of it listens', async () => {
    const databaseUrl = `postgres://nobody:secret-password@127.0.0.1:${await freePort()}/none`;
    const url = await startAlone({ databaseUrl });
    const { status, json } = await get(url, '/readyz');
    assert.equal(status, 503);
    assert.deepEqual(Object.keys(json.problems), ['postgresql']);
    assert.doesNotMatch(JSON.stringify(json), /secret-password/);
  });

  it('GET /readyz does not hang where a server takes the connection and says nothing', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as { port: number };
    try {
      const url = await startAlone({ databaseUrl: `postgres://nobody@127.0.0.1:${port}/none` });
      const { status, json } = await get(url, '/readyz');
      assert.equal(status, 503);
      assert.deepEqual(Object.keys(json.problems), ['postgresql']);
    } finally {
      silent.close();
    }
  });

  it('GET /readyz names the migrations that are missing', async () => {
    const config = await testConfig();
    const owner = new pg.Client(config.databaseUrl);
    await owner.connect();
    await owner.query(`DELETE FROM schema_migration WHERE name LIKE '0003%'`);
    await owner.end();
    const url = await startAlone({ databaseUrl: config.databaseUrl });
    const { status, json } = await get(url, '/readyz');
    assert.equal(status, 503);
    assert.deepEqual(Object.keys(json.problems), ['postgresql']);
    assert.match(json.problems.postgresql, /0003_\w+.*npm run migrate/);
  });

  it('GET /metrics counts requests by route and status, in the text format, without ids or keys', async () => {
    const stack = await sharedStack();
    const partner = await stack.createPartner();
    const card = 'card_00000000000000000000000000';
    await partner.call('GET', `/cards/${card}`);
    const response = await fetch(`http://${stack.config.host}:${stack.config.port}/metrics`);
    const text = await response.text();
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
    assert.match(
      text,
      /^http_request_duration_seconds_count\{method="GET",route="\/v1\/cards\/:cardId",status="404"\} \d+$/m,
    );
    assert.match(text, /^process_cpu_seconds_total /m);
    assert.ok(!text.includes(card) && !text.includes(partner.id) && !text.includes(partner.keys.test));
  });
});
