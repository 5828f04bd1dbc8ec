import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createApiKey } from '../../../accounts/api-keys.ts';
import { DEFAULT_LIMITS } from '../../../accounts/limits-rules.ts';
import { updatePartner } from '../../../accounts/partners.ts';
import { Scope } from '../../../accounts/scope-rules.ts';
import { freePort } from '../../../dev/free-port.ts';
import { DEFAULT_FEE_PLAN } from '../../../domain/fees.ts';
import { type DepositStack, startDepositStack } from '../../support/deposits/deposit-stack.ts';
import { assertAsSampled, type Page, readGuide, samplesOf } from '../../support/docs/markdown-samples.ts';
import { findProgram } from '../../support/find-program.ts';
import { fundedPartner } from '../../support/money.ts';
import type { TestPartner } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { answer, type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const CLIENT = join(ROOT, 'client/index.ts');
const readPage = (path: string) => readFile(join(ROOT, path), 'utf8');

describe('the samples in the partner pages', () => {
  let service: DepositStack;
  let apiUrl: string;
  let receiver: Receiver;
  let folder: string;
  let pages: Page[];
  let guide: string;
  before(async () => {
    service = await startDepositStack();
    apiUrl = `http://${service.stack.config.host}:${service.stack.config.port}/v1`;
    receiver = await startReceiver();
    receiver.behave(answer(204));
    folder = await mkdtemp(join(tmpdir(), 'card-issuing-samples-'));
    pages = await readGuide();
    guide = pages.map(({ text }) => text).join('\n');
  });
  after(async () => {
    await rm(folder, { recursive: true, force: true });
    await receiver?.stop();
    await service?.stop();
  });

  async function ask(text: string, env: Record<string, string>): Promise<{ status: number; body: string }[]> {
    const curl = `curl() { command curl -sS -w '\\n%{http_code}\\n' "$@"; }`;
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', `${curl}\n${text}`], {
      env: { PATH: process.env.PATH ?? '', ...env },
      cwd: folder,
    });
    return [...stdout.matchAll(/^(.*)\n\n?(\d{3})$/gm)].map(([, body = '', status]) => ({
      status: Number(status),
      body,
    }));
  }

  it('get, in the shell, the responses that the guide shows', async function () {
    if (findProgram({ names: ['curl'], debianPackage: 'curl' }) === undefined) return this.skip();
    const partner = await service.stack.createPartner();
    await updatePartner(service.stack.operator, partner.id, { secureDetailsEnabled: true });
    const wanted = { partnerId: partner.id, mode: 'test', name: null, scopes: Scope.options } as const;
    const { key } = await createApiKey(service.stack.operator, wanted);
    const keys = { KEY: partner.keys.test, LIVE: partner.keys.live, KEYS_KEY: key };
    const env: Record<string, string> = { API: apiUrl, ...keys };
    const here = (text: string) =>
      text.replace(/https:\/\/hooks\.example\.com\/\w+|http:\/\/127\.0\.0\.1:4000\//, receiver.url);
    const samples = pages.flatMap(({ path, text }) =>
      samplesOf(text).map((sample) => ({ ...sample, at: `${path}:${sample.line}` })),
    );
    let last = '';
    let compared = 0;
    for (const [index, { language, text, at }] of samples.entries()) {
      if (language === 'sh') {
        if (text.includes('$EVENT')) await untilDelivered(partner, env.EVENT ?? '');
        if (text.includes('$DEPOSIT')) await untilInReview(partner, env.DEPOSIT ?? '');
        const answers = await ask(here(text), env);
        assert.ok(answers.length > 0, at);
        const isRefused = samples[index + 1]?.text.startsWith('{ "error":') ?? false;
        for (const { status, body } of answers) {
          assert.equal(status >= 300, isRefused, `${at}: ${status} ${body}`);
          // A report went to a file.
          if (body === '') continue;
          const { id = '' } = JSON.parse(body) as { id?: string };
          if (id.startsWith('card_')) env.CARD = id;
          if (id.startsWith('evt_')) env.EVENT = id;
          if (id.startsWith('we_')) env.ENDPOINT = id;
          if (id.startsWith('auth_')) env.AUTHORIZATION = id;
          if (id.startsWith('dep_')) env.DEPOSIT = id;
          if (id.startsWith('txn_')) env.TRANSACTION = id;
          last = body;
        }
      } else if (language === 'json') {
        assertAsSampled(JSON.parse(last), JSON.parse(here(text)), at);
        compared += 1;
      }
    }
    assert.equal(compared, 14);
  });

  async function untilDelivered(partner: TestPartner, eventId: string): Promise<void> {
    await until(`${eventId} is delivered`, async () => {
      const { json } = await partner.call('GET', `/events/${eventId}`);
      return json.delivery.status === 'delivered';
    });
  }

  async function untilInReview(partner: TestPartner, depositId: string): Promise<void> {
    await until(`${depositId} is in review`, async () => {
      const { json } = await partner.call('GET', `/funding/deposits/${depositId}`);
      return json.status === 'needs_review';
    });
  }

  /** All samples of a page in TypeScript as one module, which is type-checked, and started. */
  async function start(
    page: string,
    env: Record<string, string>,
  ): Promise<{ lines: () => string[]; stop: () => Promise<void> }> {
    const code = samplesOf(page)
      .filter(({ language }) => language === 'ts')
      .map(({ text }) => text)
      .join('\n')
      .replaceAll(`'virtual-card-issuing-client'`, JSON.stringify(CLIENT))
      .replaceAll(`'https://api.example.com/v1'`, JSON.stringify(apiUrl))
      .replace('.listen(4000)', `.listen(${env.PORT})`);
    const file = join(folder, `${Object.values(env).join().length}.mts`);
    await writeFile(file, code);
    const flags =
      '--noEmit --strict --allowImportingTsExtensions --module nodenext --target es2024 --lib es2024';
    const types = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')];
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    await run(process.execPath, [tsc, ...flags.split(' '), ...types, file], { cwd: folder }).catch(
      ({ stdout }) => assert.fail(stdout),
    );
    const child = spawn(process.execPath, [file], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text));
    const ended = once(child, 'close');
    return {
      lines: () => output.split('\n'),
      stop: async () => {
        child.kill();
        await ended;
      },
    };
  }

  it('are valid TypeScript in the guide, and run', async () => {
    const partner = await service.stack.createPartner();
    await partner.call('POST', '/test/credit', { body: { amount: 100_000 }, idempotencyKey: 'credit' });
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/`;
    const { json } = await partner.call('PUT', '/webhook-endpoint', { body: { url } });
    const program = await start(guide, {
      API: apiUrl,
      KEY: partner.keys.test,
      WEBHOOK_SECRET: json.secret,
      PORT: String(port),
    });
    try {
      const said = (text: string) =>
        until(`it says ${text}`, () => program.lines().some((line) => line.startsWith(text)));
      await said('active 5000');
      await said('fund the balance, then use a new key req_');
      await said('second-card');
      await said('daily 0 2000');
      await said('monthly 0 30000');
      const { json: ping } = await partner.call('POST', '/webhook-endpoint/test');
      await said(`ping ${ping.id}`);
    } catch (error) {
      throw new Error(program.lines().join('\n'), { cause: error });
    } finally {
      await program.stop();
    }
  });

  it('are valid TypeScript in the client’s README, and run', async () => {
    const partner = await fundedPartner(service.stack);
    const program = await start(await readPage('client/README.md'), {
      CARD_ISSUING_API_KEY: partner.keys.test,
      WEBHOOK_SECRET: 'whsec_of_no_endpoint_at_all_00000000000',
    });
    try {
      await until('it lists the card', () => program.lines().some((line) => /^card_\w+ 5000$/.test(line)));
    } catch (error) {
      throw new Error(program.lines().join('\n'), { cause: error });
    } finally {
      await program.stop();
    }
  });

  it('stop at once if the secret of a receiver is not set', async () => {
    for (const page of [guide, await readPage('client/README.md')]) {
      const receivers = samplesOf(page).filter(({ text }) => text.includes('webhooks.verify'));
      assert.equal(receivers.length, 1);
      const program = await start(`\`\`\`ts\n${receivers[0]?.text}\`\`\`\n`, {});
      try {
        await until('it names the variable', () =>
          program.lines().some((line) => line.includes('set WEBHOOK_SECRET to')),
        );
      } finally {
        await program.stop();
      }
    }
  });

  it("appear beside the service's own figures", () => {
    const { minCardCents, maxCardCents, maxOpenCards, maxIssuedPerDayCents } = DEFAULT_LIMITS;
    const number = (value: number) => value.toLocaleString('en-US');
    const dollars = (cents: number) => `$${(cents / 100).toFixed(2)}`;
    const plan = DEFAULT_FEE_PLAN;
    for (const row of [
      `| amount of one card or top-up | ${minCardCents} to ${number(maxCardCents)} cents |`,
      `| open cards (pending, active or frozen) | ${number(maxOpenCards)} |`,
      `| loaded on cards per UTC day | ${number(maxIssuedPerDayCents)} cents |`,
      `| ${dollars(plan.cardActivationCents)} |`,
      `| ${plan.cardFundingBasisPoints / 100}% of the amount, at least ${dollars(plan.cardFundingMinCents)} |`,
      `| ${dollars(plan.transactionFlatCents)} and ${plan.transactionBasisPoints / 100}% of the amount |`,
      `| ${dollars(plan.declineFlatCents)} |`,
    ]) {
      assert.ok(guide.includes(row), row);
    }
  });
});
