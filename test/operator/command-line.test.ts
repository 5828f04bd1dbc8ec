import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { hostname, userInfo } from 'node:os';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../dev/free-port.ts';
import { operateIn, operatorEnvironment } from '../support/operator/operate.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PACKAGES = 'test/support/operator/loaded-packages.ts';
const NOWHERE = 'prt_01k0000000000000000000000a';
/** What takes a tenth of a second and more to load. */
const DATABASE = ['@mikro-orm/core', '@mikro-orm/postgresql'];
const TEMPORAL_CLIENT = ['@temporalio/client', '@grpc/grpc-js'];

interface Exit {
  code: number;
  out: string;
  err: string;
}

describe("the operator's command line", () => {
  let env: NodeJS.ProcessEnv;
  before(async () => {
    env = await operatorEnvironment();
  });

  function run(given: NodeJS.ProcessEnv, ...args: string[]): Promise<Exit> {
    return new Promise((resolve, reject) => {
      const options = { cwd: ROOT, env: { PATH: process.env.PATH, ...given } };
      execFile(process.execPath, args, options, (error, out, err) => {
        if (error !== null && typeof error.code !== 'number') reject(error);
        else resolve({ code: Number(error?.code ?? 0), out, err });
      });
    });
  }

  it('prints answers on standard output and failures on standard error, and ends with 0, 1 or 2', async () => {
    const operator = (...args: string[]) => run(env, 'operator/main.ts', ...args);
    const [made, unknown, wrong] = await Promise.all([
      operator('--json', 'partner', 'create', '--name', 'Acme'),
      operator('partner', 'show', NOWHERE, '--json'),
      operator('partner', 'adjust', NOWHERE, '--mode', 'test', '--amount', '-5'),
    ]);
    assert.deepEqual([made.code, made.err], [0, '']);
    assert.equal(JSON.parse(made.out).name, 'Acme');
    assert.deepEqual(unknown, {
      code: 1,
      out: '',
      err: `There is no partner ${NOWHERE}: run "operator partner list".\n`,
    });
    assert.deepEqual([wrong.code, wrong.out], [2, '']);
    assert.match(wrong.err, /required option '--reason <reason>' not specified/);
    const { json } = await operateIn(env)('audit', 'list');
    assert.equal(json[0].actor, `${userInfo().username}@${hostname()}`);
  });

  it('prints text for people without --json', async () => {
    await operateIn(env)('partner', 'create', '--name', 'Acme');
    const { code, out, err } = await run(env, 'operator/main.ts', 'partner', 'list');
    assert.deepEqual([code, err], [0, '']);
    assert.match(out, /^ID +NAME +SECURE_DETAILS +SUSPENDED_AT +CREATED\nprt_\w+ +Acme +false +- +\d{4}-/);
  });

  it('says what to do if the database does not respond or is not migrated', async () => {
    const url = new URL(env.DATABASE_URL ?? '');
    const { password } = url;
    const tries = {
      ECONNREFUSED: { port: String(await freePort()) },
      '3D000': { pathname: '/nowhere' },
      '28P01': { password: 'wrong' },
      '42P01': { pathname: '/template1' },
    };
    for (const [sqlState, change] of Object.entries(tries)) {
      const other = Object.assign(new URL(url), change);
      const { code, out, err } = await operateIn({ ...env, DATABASE_URL: other.href })('partner', 'list');
      assert.deepEqual([code, out], [1, '']);
      assert.match(
        err,
        new RegExp(
          `^PostgreSQL at ${other.host}${other.pathname} .*: (check|correct|run) .*\\(${sqlState}\\)\n$`,
        ),
      );
      assert.ok(!err.includes(`:${password}`));
    }
  });

  it("loads neither the database nor Temporal's client for --help, and no Temporal client for what needs the database alone", async () => {
    const operate = operateIn(env);
    const partner = (await operate('partner', 'create', '--name', 'Loaded')).json.id;
    const key = (await operate('key', 'create', partner, '--mode', 'test')).json.id;
    const withoutTemporal = [
      'partner create --name Other',
      'partner list',
      `partner show ${partner}`,
      `partner update ${partner} --name Renamed`,
      `partner fees ${partner}`,
      `partner limits ${partner}`,
      `partner adjust ${partner} --mode test --amount 5 --reason gift`,
      `key create ${partner} --mode live`,
      `key list ${partner}`,
      `key revoke ${key}`,
      'product set-current ONE --bin 424242 --network visa',
      'product list',
      `webhook-endpoint set ${partner} --url https://hooks.example.com/`,
      `webhook-endpoint show ${partner}`,
      'webhook list',
      `webhook requeue --partner ${partner} --yes`,
      'ledger check',
      `ledger balance ${partner} --mode test`,
      'deposit list',
      'attention list',
      'audit list',
      'card list',
      ...['card', 'topup', 'withdrawal', 'deposit', 'tron', 'transaction', 'network-event'].map(
        (noun) => `${noun} --help`,
      ),
    ];
    const lines = ['--help', ...withoutTemporal].map((line) => line.split(' '));
    const { code, out, err } = await run(env, PACKAGES, JSON.stringify(lines));
    assert.equal(code, 0, err);
    const loaded: string[][] = JSON.parse(out).map((packages: string[]) =>
      [...DATABASE, ...TEMPORAL_CLIENT].filter((one) => packages.includes(one)),
    );
    assert.deepEqual([loaded[0], loaded.at(-1)], [[], DATABASE]);
  });
});
