import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { freePort } from '../../../../dev/free-port.ts';
import { processIdentity } from '../../../../dev/process/identity.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';
import { childrenOf, runStack, type StackProcess } from '../../../support/dev/stack-process.ts';
import { until } from '../../../support/until.ts';

/** The steps of one stack's life, each beginning where the one before ended. */
describe('npm start', function () {
  this.timeout(120_000);
  const scratch = scratchFolder();
  let env: { DATA_DIR: string; PORT: string; SOMEBODY_ELSES_TOKEN: string };
  let stack: StackProcess;
  // biome-ignore lint/suspicious/noExplicitAny: what another program would read.
  let file: any;

  const start = async () => {
    stack = runStack('start', env);
    const ready = await stack.printed(/^ready/);
    file = JSON.parse(await readFile(join(env.DATA_DIR, 'stack.json'), 'utf8'));
    return ready;
  };
  const call = async (path: string, body?: unknown) => {
    const headers = {
      authorization: `Bearer ${file.demo.testKey}`,
      'content-type': 'application/json',
      'idempotency-key': 'the-one',
    };
    const init = body === undefined ? { headers } : { headers, method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(`${file.apiUrl}${path}`, init);
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    return { status: response.status, json: (await response.json()) as any };
  };

  before(async () => {
    env = {
      DATA_DIR: join(scratch.path, 'data'),
      PORT: String(await freePort()),
      SOMEBODY_ELSES_TOKEN: 'hunter2',
    };
  });
  after(() => stack?.kill('SIGKILL'));

  it('prints one line `ready` with the URLs, the first time with the keys, and serves with them', async () => {
    const ready = await start();
    const origin = `http://127.0.0.1:${env.PORT}`;
    assert.equal(stack.lines.filter((line) => line.startsWith('ready')).length, 1);
    const { testKey, liveKey, partnerId } = file.demo;
    for (const part of [
      `${origin}/v1`,
      `${origin}/docs`,
      file.temporalUiUrl,
      file.workerUrl,
      partnerId,
      testKey,
      liveKey,
    ]) {
      assert.ok(part === null || ready.includes(part), `${part} in ${ready}`);
    }
    const { status, json } = await call('/ping');
    assert.deepEqual([status, json.partner_id, json.mode], [200, partnerId, 'test']);
    assert.ok((await fetch(`${file.workerUrl}/metrics`)).ok);
    assert.ok(file.temporalUiUrl === null || (await fetch(file.temporalUiUrl)).ok);
  });

  it('encrypts what it sends to Temporal, and has the UI decrypt it', async () => {
    const body = { amount: 10_000, external_ref: 'codec' };
    const headers = {
      authorization: `Bearer ${file.demo.liveKey}`,
      'content-type': 'application/json',
      'idempotency-key': 'live',
    };
    // Declined, since the account has no money; its workflow says so.
    await fetch(`${file.apiUrl}/cards`, { method: 'POST', headers, body: JSON.stringify(body) });
    if (file.temporalUiUrl !== null) {
      const settings = await fetch(`${file.temporalUiUrl}/api/v1/settings`);
      const { Codec } = (await settings.json()) as { Codec: { Endpoint: string } };
      assert.equal(Codec.Endpoint, file.codecEndpoint);
    }
    // As the server has it: this client has no keys.
    const history = await withClient((client) =>
      until('the workflow is listed', async () => {
        for await (const { workflowId } of client.workflow.list({ query: "WorkflowType = 'issueCard'" }))
          return client.workflow.getHandle(workflowId).fetchHistory();
      }),
    );
    const { input } = history.events?.[0]?.workflowExecutionStartedEventAttributes ?? {};
    const sealed = input?.payloads?.[0];
    const base64 = (bytes?: Uint8Array | null) => Buffer.from(bytes ?? []).toString('base64');
    assert.equal(Buffer.from(sealed?.metadata?.encoding ?? []).toString(), 'binary/encrypted');
    const encoding = base64(sealed?.metadata?.encoding);
    const asked = { payloads: [{ metadata: { encoding }, data: base64(sealed?.data) }] };
    const decoded = await fetch(`${file.codecEndpoint}/decode`, {
      method: 'POST',
      body: JSON.stringify(asked),
    });
    const { payloads } = (await decoded.json()) as { payloads: { data: string }[] };
    assert.match(atob(payloads[0]?.data ?? ''), /^{"claimId":"claim_/);
  });

  it('writes stack.json for other programs and nobody else, its secrets likewise', async () => {
    assert.deepEqual(Object.keys(file).sort(), [
      'apiUrl',
      'codecEndpoint',
      'databaseUrl',
      'demo',
      'operatorDatabaseUrl',
      'ownerDatabaseUrl',
      'temporalAddress',
      'temporalNamespace',
      'temporalUiUrl',
      'workerUrl',
    ]);
    assert.deepEqual(Object.keys(file.demo).sort(), ['liveKey', 'partnerId', 'testKey']);
    assert.equal(file.apiUrl, `http://127.0.0.1:${env.PORT}/v1`);
    for (const name of [
      'stack.json',
      'secrets.json',
      'demo-partner.json',
      'logs/api.log',
      'logs/worker.log',
    ]) {
      const { mode } = await stat(join(env.DATA_DIR, name));
      assert.equal(mode & 0o077, 0, `${name} has mode ${mode.toString(8)}`);
    }
  });

  it('tells what it starts nothing of its environment but what is meant for it', async function () {
    // Other systems do not show a process's environment.
    if (process.platform !== 'linux') this.skip();
    for (const [name, pid] of childrenOf(env.DATA_DIR)) {
      const told = await readFile(`/proc/${pid}/environ`, 'utf8');
      assert.match(told, /(^|\0)PATH=/, name);
      assert.doesNotMatch(told, /SOMEBODY_ELSES_TOKEN|hunter2/, name);
    }
  });

  it('refuses a second start and a reset on the same folder', async () => {
    for (const script of ['start', 'reset'] as const) {
      const second = runStack(script, env);
      assert.equal(await second.ended, 1);
      assert.match(second.lines.join('\n'), new RegExp(`a stack already runs on .*process ${stack.pid}`));
    }
    assert.equal((await call('/ping')).status, 200);
  });

  it('starts again whichever child is killed, and says so', async () => {
    for (const name of childrenOf(env.DATA_DIR).keys()) {
      // Looked up anew: Temporal's UI is started again with its server.
      process.kill(childrenOf(env.DATA_DIR).get(name) as number, 'SIGKILL');
      await stack.printed(new RegExp(`^${name} ended; starting it again in .* signal SIGKILL`));
      await stack.printed(new RegExp(`^${name} is running again`));
    }
    await until(
      'the API is ready again',
      async () => (await fetch(`http://127.0.0.1:${env.PORT}/readyz`)).status === 200,
    );
  });

  it('loses nothing when it is killed, with or without its children', async () => {
    assert.equal((await call('/test/credit', { amount: 5_000 })).status, 201);
    await startWorkflow('kept');
    for (const withChildren of [false, true]) {
      const before = { ...file };
      const children = childrenOf(env.DATA_DIR);
      stack.kill('SIGKILL');
      if (withChildren) for (const pid of children.values()) process.kill(pid, 'SIGKILL');
      await stack.ended;

      const ready = await start();
      assert.ok(!ready.includes('sk_'), 'the keys are printed once');
      assert.deepEqual(file, before);
      for (const [name, pid] of children)
        assert.equal(processIdentity(pid), undefined, `the old ${name} still runs`);
      assert.equal((await call('/balance')).json.available, 5_000);
      assert.equal(await workflowStatus('kept'), 'RUNNING');
    }
  });

  it('stops within 15 s, in order, and leaves nothing running', async () => {
    const running = childrenOf(env.DATA_DIR);
    const stoppedAt = Date.now();
    stack.kill('SIGTERM');
    const order: string[] = [];
    while (running.size > 0) {
      for (const [name, pid] of running) {
        if (processIdentity(pid) !== undefined) continue;
        order.push(name);
        running.delete(name);
      }
      await delay(5);
    }
    assert.equal(await stack.ended, 0);
    assert.ok(Date.now() - stoppedAt < 15_000);
    assert.deepEqual(
      order.filter((name) => name !== 'Temporal UI'),
      ['API', 'worker', 'codec endpoint', 'Temporal', 'PostgreSQL'].filter((name) => order.includes(name)),
    );
  });

  it('keeps data and URLs over an ordered stop, and stops at SIGINT too', async () => {
    const before = { ...file };
    await start();
    assert.deepEqual(file, before);
    assert.equal((await call('/balance')).json.available, 5_000);
    stack.kill('SIGINT');
    assert.equal(await stack.ended, 0);
  });

  it('forgets everything at npm run reset', async () => {
    assert.equal(await runStack('reset', env).ended, 0);
    assert.equal(existsSync(env.DATA_DIR), false);
  });

  async function withClient<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const connection = await Connection.connect({ address: file.temporalAddress });
    try {
      return await work(new Client({ connection, namespace: file.temporalNamespace }));
    } finally {
      await connection.close();
    }
  }
  const startWorkflow = (workflowId: string) =>
    withClient((client) =>
      client.workflow.start('nobodyRunsIt', { workflowId, taskQueue: 'nobody-polls-it' }),
    );
  const workflowStatus = (workflowId: string) =>
    withClient(async (client) => (await client.workflow.getHandle(workflowId).describe()).status.name);
});
