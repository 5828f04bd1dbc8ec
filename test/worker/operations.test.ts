import assert from 'node:assert/strict';
import Koa from 'koa';
import { pino } from 'pino';
import { serveHttp } from '../../api/http/http-server.ts';
import { WORKER_QUEUES } from '../../platform/config/task-queues.ts';
import { StartRefused } from '../../platform/process/run-process.ts';
import { type RunningWorker, startWorker } from '../../worker/start-worker.ts';
import { testConfig, testWorkflowBundle } from '../support/stack.ts';
import { until } from '../support/until.ts';

interface Readiness {
  problems: Record<string, string>;
  workers: Record<string, number>;
}

describe("the worker's own address", () => {
  const logger = pino({ level: 'silent' });
  let worker: RunningWorker;
  before(async () => {
    worker = await startWorker(await testConfig(), logger, { workflowBundle: await testWorkflowBundle() });
  });
  after(() => worker.stop());

  it('answers that the process is alive', async () => {
    const response = await fetch(`${worker.operationsUrl}/healthz`);
    assert.deepEqual([response.status, await response.json()], [200, { status: 'ok' }]);
  });

  it('is ready once the worker polls all three queues, and not once it stops', async () => {
    const own = await startWorker(await testConfig(), logger, { workflowBundle: await testWorkflowBundle() });
    const readyz = async () => {
      const response = await fetch(`${own.operationsUrl}/readyz`);
      return { ...((await response.json()) as Readiness), status: response.status };
    };
    await until('it polls', async () =>
      Object.values((await readyz()).workers).every((count) => count === 1),
    );
    const { status, workers } = await readyz();
    assert.deepEqual([status, Object.keys(workers).length], [200, 3]);

    const stopped = own.stop();
    const { status: whileStopping, problems } = await readyz();
    assert.deepEqual([whileStopping, problems], [503, { process: 'is stopping' }]);
    await stopped;
  });

  it('serves metrics of the process, its connections, the SDK and the whole database in the text format', async () => {
    const text = await until('it polls', async () => {
      const response = await fetch(`${worker.operationsUrl}/metrics`);
      assert.equal(response.status, 200);
      assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
      const text = await response.text();
      return text.includes('temporal_num_pollers{') && text;
    });
    for (const sample of [
      /^process_cpu_seconds_total /m,
      /^nodejs_eventloop_lag_p99_seconds /m,
      /^card_issuing_build_info\{version="\d+\.\d+\.\d+",node_version="24\.[\d.]+"\} 1$/m,
      /^database_pool_connections\{share="accounts"\} 16$/m,
      /^database_pool_connections_in_use\{share="service"\} \d$/m,
      /^database_pool_requests_waiting\{share="accounts"\} 0$/m,
      /^database_pool_timeouts_total\{share="accounts"\} 0$/m,
      /^webhook_events_waiting\{for="relay"\} 0$/m,
      /^deposits_waiting\{for="review"\} 0$/m,
      /^measurement_timestamp_seconds\{measurement="webhooks"\} \d/m,
    ])
      assert.match(text, sample);
  });

  it('serves nothing of the API', async () => {
    for (const path of ['/v1/cards', '/docs', '/network/callbacks'])
      assert.equal((await fetch(`${worker.operationsUrl}${path}`)).status, 404, path);
  });

  it('makes a process whose port is taken say which variable to change', async () => {
    const { hostname: host, port } = new URL(worker.operationsUrl);
    const taken = { host, port: Number(port), queues: WORKER_QUEUES };
    const refusal = (variable: string) => (error: unknown) =>
      error instanceof StartRefused &&
      error.message ===
        `Port ${port} of ${host} is taken: stop what listens there, or set ${variable} to another port.`;
    const config = await testConfig({ worker: taken });
    await assert.rejects(startWorker(config, logger), refusal('WORKER_PORT'));
    await assert.rejects(serveHttp(new Koa(), taken, 'PORT'), refusal('PORT'));
  });
});
