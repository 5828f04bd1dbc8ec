import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../../dev/free-port.ts';
import { runOperator } from '../../../operator/program.ts';
import { type Operate, operateIn, operatorEnvironment } from '../../support/operator/operate.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const NOWHERE = 'prt_01k0000000000000000000000a';

/** The real thing: a process, its streams and its exit code. */
function run(env: NodeJS.ProcessEnv, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve, reject) => {
    const command = ['operator/main.ts', ...args];
    execFile(
      process.execPath,
      command,
      { cwd: ROOT, env: { PATH: process.env.PATH, ...env } },
      (error, out, err) => {
        if (error !== null && typeof error.code !== 'number') reject(error);
        else resolve({ code: Number(error?.code ?? 0), out, err });
      },
    );
  });
}

describe('the operator’s command line as a process', () => {
  let env: NodeJS.ProcessEnv;
  let folder: string;

  before(async () => {
    env = await operatorEnvironment();
    folder = await mkdtemp(join(tmpdir(), 'card-issuing-operator-'));
  });

  after(() => rm(folder, { recursive: true, force: true }));

  it('prints one JSON value on standard output and nothing else with --json anywhere on the line', async () => {
    const after = await run(env, 'partner', 'create', '--name', 'Acme', '--json');
    assert.deepEqual([after.code, after.err], [0, '']);
    const { id } = JSON.parse(after.out);
    const before = await run(env, '--json', 'partner', 'show', id);
    assert.deepEqual([before.code, before.err, JSON.parse(before.out).name], [0, '', 'Acme']);
    const audit = await run(env, 'audit', 'list', '--json');
    assert.equal(JSON.parse(audit.out)[0].actor, `${userInfo().username}@${hostname()}`);
  });

  it('prints text for people without --json', async () => {
    const { code, out, err } = await run(env, 'partner', 'list');
    assert.deepEqual([code, err], [0, '']);
    assert.match(out, /^ID +NAME +SECURE_DETAILS +SUSPENDED_AT +CREATED\nprt_\w+ +Acme +false +- +\d{4}-/);
  });

  it('reports a failure on standard error, with exit code 1', async () => {
    const { code, out, err } = await run(env, 'partner', 'show', NOWHERE, '--json');
    assert.deepEqual([code, out], [1, '']);
    assert.equal(err, `There is no partner ${NOWHERE}: run "operator partner list".\n`);
  });

  it('reports wrong usage on standard error, with exit code 2', async () => {
    const { code, out, err } = await run(
      env,
      'partner',
      'adjust',
      NOWHERE,
      '--mode',
      'test',
      '--amount',
      '-5',
    );
    assert.deepEqual([code, out], [2, '']);
    assert.match(err, /required option '--reason <reason>' not specified/);
  });

  it('uses the stack that runs in DATA_DIR if DATABASE_URL is not set', async () => {
    const stack = {
      databaseUrl: 'postgres://service@127.0.0.1:1/service',
      ownerDatabaseUrl: 'postgres://owner@127.0.0.1:1/service',
      operatorDatabaseUrl: env.DATABASE_URL,
      temporalAddress: '127.0.0.1:1',
      temporalNamespace: 'default',
    };
    await writeFile(join(folder, 'stack.json'), JSON.stringify(stack));
    await writeFile(join(folder, 'secrets.json'), JSON.stringify({ encryptionKeys: env.ENCRYPTION_KEYS }));
    const { code, out, err } = await run({ DATA_DIR: folder }, 'partner', 'list', '--json');
    assert.deepEqual([code, err, JSON.parse(out)[0].name], [0, '', 'Acme']);
  });
});

describe('the operator’s command line', () => {
  let env: NodeJS.ProcessEnv;
  let operate: Operate;

  before(async () => {
    env = await operatorEnvironment();
    operate = operateIn(env);
  });

  const VERBS = [
    ...[
      'create',
      'list',
      'show',
      'update',
      'suspend',
      'resume',
      'fees',
      'limits',
      'controls',
      'adjust',
      'erase-cardholder',
    ].map((verb) => ['partner', verb]),
    ...['list', 'approve', 'reject'].map((verb) => ['adjustment', verb]),
    ...['create', 'list', 'revoke'].map((verb) => ['key', verb]),
    ['key-ring', 'reseal'],
    ...['list', 'set-current', 'allow', 'retire'].map((verb) => ['product', verb]),
    ...['list', 'show', 'resolve', 'freeze', 'unfreeze', 'block', 'dismiss'].map((verb) => ['card', verb]),
    ...['list', 'show', 'resolve', 'book', 'dismiss'].map((verb) => ['topup', verb]),
    ...['list', 'show', 'resolve', 'book', 'dismiss'].map((verb) => ['withdrawal', verb]),
    ...['list', 'show', 'resolve'].map((verb) => ['deposit', verb]),
    ...['status', 'rescan'].map((verb) => ['tron', verb]),
    ...['list', 'show'].map((verb) => ['authorization', verb]),
    ...['list', 'kept', 'show-kept', 'book', 'dismiss'].map((verb) => ['transaction', verb]),
    ['request', 'find'],
    ['operation', 'list'],
    ['operation', 'show'],
    ...['reconcile', 'findings', 'dismiss'].map((verb) => ['network', verb]),
    ...['list', 'show', 'retry', 'dismiss', 'send'].map((verb) => ['network-event', verb]),
    ...['list', 'retry', 'dismiss'].map((verb) => ['money-return', verb]),
    ...['list', 'retry', 'dismiss'].map((verb) => ['money-cover', verb]),
    ...['set', 'list', 'show', 'replays', 'rotate-secret', 'disable', 'enable'].map((verb) => [
      'webhook-endpoint',
      verb,
    ]),
    ...['list', 'show', 'requeue'].map((verb) => ['webhook', verb]),
    ...['check', 'balance', 'statement', 'transactions'].map((verb) => ['ledger', verb]),
    ['attention', 'list'],
    ['restore', 'reconcile'],
    ...['list', 'verify', 'export'].map((verb) => ['audit', verb]),
  ] as [string, string][];

  it('has exactly these nouns and verbs, each with help and examples', async () => {
    const nouns = [...new Set(VERBS.map(([noun]) => noun))];
    assert.deepEqual(await commandsOf(), nouns);
    for (const noun of nouns) {
      const verbs = VERBS.filter(([of]) => of === noun).map(([, verb]) => verb);
      assert.deepEqual(await commandsOf(noun), verbs);
    }
    for (const words of VERBS) {
      const text = await helpOf(...words);
      assert.match(text, /--json/);
      assert.ok(text.includes(`npm run operator -- ${words.join(' ')}`), text);
    }
  });

  for (const args of [
    [],
    ['partner'],
    ['bogus'],
    ['partner', 'bogus'],
    ['partner', 'list', '--bogus'],
    ['partner', 'list', 'x'],
  ]) {
    it(`rejects "${args.join(' ')}" as wrong usage`, async () => {
      const { code, out, err } = await operate(...args);
      assert.deepEqual({ code, out }, { code: 2, out: '' });
      assert.notEqual(err, '');
    });
  }

  it('says what to do if the database does not respond or is not migrated', async () => {
    const url = new URL(env.DATABASE_URL ?? '');
    const { password } = url;
    const tries = {
      ECONNREFUSED: { port: String(await freePort()) },
      '3D000': { pathname: '/nowhere' },
      '28P01': { password: 'wrong' },
      '42P01': { pathname: '/template1' },
    };
    for (const [code, change] of Object.entries(tries)) {
      const other = Object.assign(new URL(url), change);
      const {
        code: exit,
        out,
        err,
      } = await operateIn({ ...env, DATABASE_URL: other.href })('partner', 'list');
      assert.deepEqual([exit, out], [1, '']);
      assert.match(
        err,
        new RegExp(
          `^PostgreSQL at ${other.host}${other.pathname} .*: (check|correct|run) .*\\(${code}\\)\n$`,
        ),
      );
      assert.ok(!err.includes(`:${password}`));
    }
  });

  async function helpOf(...words: string[]): Promise<string> {
    let text = '';
    const code = await runOperator([...words, '--help'], {
      readConfig: () => assert.fail('help needs no configuration'),
      actor: 'nobody',
      out: (part) => {
        text += part;
      },
      err: assert.fail,
    });
    assert.equal(code, 0);
    return text;
  }

  async function commandsOf(...words: string[]): Promise<string[]> {
    const text = await helpOf(...words);
    const block = text.slice(text.indexOf('Commands:\n') + 10).split('\n\n')[0] ?? '';
    const names = [...block.matchAll(/^ {2}(\S+)/gm)].map(([, name]) => name ?? '');
    return names.filter((name) => name !== 'help');
  }
});
