import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import type { Page } from 'playwright-core';
import { freePort } from '../../../../dev/free-port.ts';
import { processIdentity } from '../../../../dev/process/identity.ts';
import { issueCardWorkflowId } from '../../../../workflows/messages.ts';
import { launchBrowser } from '../../../support/browser.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';
import { childrenOf, runStack, type StackProcess } from '../../../support/dev/stack-process.ts';
import { samplesOf } from '../../../support/docs/markdown-samples.ts';
import { operateIn } from '../../../support/operator/operate.ts';
import { until } from '../../../support/until.ts';

/** The steps of one stack's life, each beginning where the one before ended. */
describe('npm start', () => {
  const scratch = scratchFolder();
  const env = { DATA_DIR: '', PORT: '', SOMEBODY_ELSES_TOKEN: 'hunter2' };
  let stack: StackProcess;
  // biome-ignore lint/suspicious/noExplicitAny: what another program would read.
  let file: any;

  const start = async () => {
    stack = runStack('start', env);
    await stack.printed(/\/ping/);
    const ready = stack.lines.slice(stack.lines.findIndex((line) => line.startsWith('ready'))).join('\n');
    file = JSON.parse(await readFile(join(env.DATA_DIR, 'stack.json'), 'utf8'));
    return ready;
  };
  const call = async (path: string, body?: unknown, key = file.demo.testKey, idempotencyKey = 'the-one') => {
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': idempotencyKey,
    };
    const init = body === undefined ? { headers } : { headers, method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(`${file.apiUrl}${path}`, init);
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    return { status: response.status, json: (await response.json()) as any };
  };

  before(async () => {
    env.DATA_DIR = join(scratch.path, 'data');
    env.PORT = String(await freePort());
  });
  after(() => stack?.kill('SIGKILL'));

  it('prints a block `ready` with the URLs, and with the keys the first time, and serves there', async () => {
    const ready = await start();
    const origin = `http://127.0.0.1:${env.PORT}`;
    assert.equal(stack.lines.filter((line) => line.startsWith('ready')).length, 1);
    assert.equal(ready.match(/\/workbench\/#[\w-]{43}$/gm)?.length, 2);
    const { testKey, liveKey, partnerId } = file.demo;
    const urls = [`${origin}/v1`, `${origin}/docs`, file.temporalUiUrl, file.workerUrl];
    for (const part of [...urls, partnerId, testKey, liveKey])
      assert.ok(part === null || ready.includes(part), `${part} in ${ready}`);
    const { status, json } = await call('/ping');
    assert.deepEqual([status, json.partner_id, json.mode], [200, partnerId, 'test']);
    assert.ok((await fetch(`${file.workerUrl}/metrics`)).ok);
    assert.ok(file.temporalUiUrl === null || (await fetch(file.temporalUiUrl)).ok);
  });

  it('prints commands to go on with, which work as they are', async () => {
    const commands = stack.lines.filter((line) => /^ {9}\S/.test(line));
    assert.match(
      commands.join('\n'),
      new RegExp(`export DATA_DIR=${env.DATA_DIR}\\n.*npm run -s env.*\\n.*curl`),
    );
    const script = ['set -eu', ...commands, 'echo "$KEY $LIVE $PARTNER"'].join('\n');
    const { DATA_DIR: _unset, ...environment } = process.env;
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { env: environment });
    const [answer = '', variables] = stdout.split('\n');
    const { testKey, liveKey, partnerId } = file.demo;
    assert.deepEqual(
      [JSON.parse(answer).partner_id, variables],
      [partnerId, `${testKey} ${liveKey} ${partnerId}`],
    );
  });

  let cardId: string;
  /** Its workflow's input, as the server has it: this client has no keys. */
  let sealed: { metadata: { encoding: string }; data: string };

  it('encrypts what it sends to Temporal, and its codec endpoint decrypts it', async () => {
    const { partnerId, liveKey } = file.demo;
    const operate = operateIn({ DATA_DIR: env.DATA_DIR });
    const adjustment = ['--mode', 'live', '--amount', '10000', '--reason', 'a card'];
    const { code, err } = await operate('partner', 'adjust', partnerId, ...adjustment);
    assert.equal(code, 0, err);
    // Accepted, and asked about until the deadline.
    const { json } = await call('/cards', { amount: 5_047, external_ref: 'codec' }, liveKey, 'live');
    cardId = json.id;
    const history = await withClient((client) =>
      client.workflow.getHandle(issueCardWorkflowId(cardId)).fetchHistory(),
    );
    const { input } = history.events?.[0]?.workflowExecutionStartedEventAttributes ?? {};
    const { metadata, data } = input?.payloads?.[0] ?? {};
    const base64 = (bytes?: Uint8Array | null) => Buffer.from(bytes ?? []).toString('base64');
    assert.equal(Buffer.from(metadata?.encoding ?? []).toString(), 'binary/encrypted');
    sealed = { metadata: { encoding: base64(metadata?.encoding) }, data: base64(data) };
    if (file.temporalUiUrl !== null) {
      const settings = await fetch(`${file.temporalUiUrl}/api/v1/settings`);
      const { Codec } = (await settings.json()) as { Codec: { Endpoint: string } };
      assert.equal(Codec.Endpoint, file.codecEndpoint);
    }
    const body = JSON.stringify({ payloads: [sealed] });
    const decoded = await fetch(`${file.codecEndpoint}/decode`, { method: 'POST', body });
    const { payloads } = (await decoded.json()) as { payloads: { data: string }[] };
    assert.match(atob(payloads[0]?.data ?? ''), /^{"claimId":"claim_/);
  });

  it('lets the UI show it in clear in a browser, but not a UI without the token', async function () {
    if (file.temporalUiUrl === null) return this.skip();
    const browser = await launchBrowser();
    if (browser === undefined) return this.skip();
    try {
      const workflow = encodeURIComponent(issueCardWorkflowId(cardId));
      const address = `${file.temporalUiUrl}/namespaces/default/workflows/${workflow}`;
      // Markdown has frames of its own, which come and go.
      const textOf = async (page: Page) => {
        const texts = await Promise.allSettled(page.frames().map((frame) => frame.textContent('body')));
        return texts.map((text) => (text.status === 'fulfilled' ? text.value : '')).join('\n');
      };
      const shows = (page: Page, ...texts: string[]) =>
        until(`the page shows ${texts}`, async () => {
          const text = await textOf(page);
          return texts.every((one) => text.includes(one)) && text;
        });
      const { origin } = new URL(file.codecEndpoint);

      const page = await browser.newPage();
      await page.goto(address);
      // Its input, and the summaries of its activities and timers.
      await shows(page, '"claim_', 'ask the network again', 'until the network is asked again');
      await page.getByText('User Metadata', { exact: true }).click();
      // Its summary, its details and its current details, which a worker tells.
      await shows(page, `Issue ${cardId} (live)`, 'card show', 'next at 20', 'send the signal');

      const stranger = await (await browser.newContext()).newPage();
      await stranger.route('**/api/v1/settings*', async (route) => {
        const response = await route.fetch();
        const settings = await response.json();
        settings.Codec.Endpoint = origin;
        await route.fulfill({ response, json: settings });
      });
      const refused = stranger.waitForResponse((response) => response.url().startsWith(`${origin}/decode`));
      await stranger.goto(address);
      assert.equal((await refused).status(), 401);
      const shown = await shows(stranger, sealed.data, 'requestIssuance');
      assert.doesNotMatch(shown, /claim_|the network is asked again/);
    } finally {
      await browser.close();
    }
  });

  it('writes stack.json and its secrets for its own user alone', async () => {
    const names =
      'apiUrl codecEndpoint databaseUrl demo operatorDatabaseUrl ownerDatabaseUrl temporalAddress ' +
      'temporalNamespace temporalUiUrl workerDatabaseUrl workerUrl';
    assert.deepEqual(Object.keys(file).sort(), names.split(' '));
    assert.deepEqual(Object.keys(file.demo).sort(), ['liveKey', 'partnerId', 'testKey']);
    assert.equal(file.apiUrl, `http://127.0.0.1:${env.PORT}/v1`);
    const files = 'stack.json secrets.json demo-partner.json logs/api.log logs/worker.log';
    for (const name of files.split(' ')) {
      const { mode } = await stat(join(env.DATA_DIR, name));
      assert.equal(mode & 0o077, 0, `${name} has mode ${mode.toString(8)}`);
    }
  });

  it('gives each child only the part of its environment that is meant for it', async function () {
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

  it('restarts any child that is killed, and says so', async () => {
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

  it('stops in order, and leaves nothing running', async () => {
    const children = childrenOf(env.DATA_DIR);
    const inOrder = ['API', 'worker', 'codec endpoint', 'Temporal', 'PostgreSQL'];
    let running = inOrder.filter((name) => children.has(name));
    stack.kill('SIGTERM');
    while (running.length > 0) {
      const still = running.filter((name) => processIdentity(children.get(name) ?? 0) !== undefined);
      // Whoever still runs comes after all that have ended, however many end between two looks.
      assert.deepEqual(still, running.slice(running.length - still.length));
      running = still;
      await delay(5);
    }
    assert.equal(await stack.ended, 0);
  });

  it('keeps data and URLs over an ordered stop', async () => {
    const before = { ...file };
    await start();
    assert.deepEqual(file, before);
    assert.equal((await call('/balance')).json.available, 5_000);
  });

  it('takes the commands of docs/local-stack.md for a first card as they are', async () => {
    const [, text = ''] =
      /^## A first card$(.*?)^## /ms.exec(await readFile('docs/local-stack.md', 'utf8')) ?? [];
    const commands = samplesOf(text).map((sample) => sample.text);
    const script = ['set -euo pipefail', ...commands].join('\n');
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { env: { ...process.env, ...env } });
    const answers = stdout.split('\n').filter((line) => line.startsWith('{'));
    const said = answers.map((answer) => {
      const { object, status, error } = JSON.parse(answer);
      return error?.code ?? (status === undefined ? object : `${object} ${status}`);
    });
    assert.deepEqual(said, [
      'balance',
      'card active',
      'list',
      'authorization pending',
      'card active',
      'transaction settled',
      'card active',
      'card funding_pending',
    ]);
  });

  it('shows itself with npm run demo, which kills the worker, any number of times', async () => {
    for (let runs = 0; runs < 2; runs += 1) {
      const worker = childrenOf(env.DATA_DIR).get('worker');
      const demo = runStack('demo', env);
      assert.equal(await demo.ended, 0, demo.lines.join('\n'));
      const text = demo.lines.join('\n');
      const steps = text.match(/^ {2}(POST|GET|kill|npm) .*$/gm)?.map((line) => line.trim());
      const expected = [
        /^POST \/test\/credit \{/,
        /^POST \/cards \{"amount":5000,/,
        /^POST \/test\/cards\/card_\w+\/authorizations \{"amount":1200,"merchant_name":"Café"\}$/,
        /^POST \/test\/authorizations\/auth_\w+\/capture \{\}$/,
        /^npm run operator -- partner adjust prt_\w+ --mode live /,
        /^POST \/cards \{"amount":5041,/,
        new RegExp(`^kill -9 ${worker}$`),
        /^GET \/cards\/card_\w+$/,
        /^npm run operator -- ledger check$/,
      ];
      assert.equal(steps?.length, expected.length, text);
      for (const [index, step] of expected.entries()) assert.match(steps?.[index] ?? '', step);
      const [, live] = /card \{"id":"(card_\w+)","status":"funding_pending"\}/.exec(text) ?? [];
      assert.equal((await call(`/cards/${live}`, undefined, file.demo.liveKey)).json.status, 'active');
      assert.match(text, /"status":"active","balance":5041/);
      assert.match(text, /Every invariant holds/);
      assert.doesNotMatch(text, /sk_(test|live)_/);
      const next = childrenOf(env.DATA_DIR).get('worker');
      assert.ok(next !== undefined && next !== worker, `worker ${worker}, then ${next}`);
    }
  });

  it('prints new links to the workbench with npm run workbench', async () => {
    const workbench = runStack('workbench', env);
    assert.equal(await workbench.ended, 0);
    for (const mode of ['test', 'live'])
      assert.ok(workbench.lines.some((line) => new RegExp(`^${mode} .*/workbench/#[\\w-]{43}$`).test(line)));
  });

  it('stops on SIGINT too, and has no demo then', async () => {
    stack.kill('SIGINT');
    assert.equal(await stack.ended, 0);
    const demo = runStack('demo', env);
    assert.equal(await demo.ended, 1);
    assert.deepEqual(demo.lines, ['The local stack does not run. Start it with npm start.']);
  });

  it('starts without links to the workbench if the demo partner has been suspended', async () => {
    await start();
    const suspended = await operateIn({ DATA_DIR: env.DATA_DIR })(
      ...['partner', 'suspend', file.demo.partnerId, '--reason', 'trying it out'],
    );
    assert.equal(suspended.code, 0, suspended.err);
    stack.kill('SIGINT');
    await stack.ended;
    assert.doesNotMatch(await start(), /workbench/);
    await stack.printed(/^No link to the workbench: .*suspended/);
    stack.kill('SIGINT');
    assert.equal(await stack.ended, 0);
  });

  it('forgets everything after npm run reset', async () => {
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
