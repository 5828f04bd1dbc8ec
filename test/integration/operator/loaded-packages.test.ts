import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { operateIn, operatorEnvironment } from '../../support/operator/operate.ts';

const SCRIPT = fileURLToPath(new URL('../../support/operator/loaded-packages.ts', import.meta.url));

/** What takes a tenth of a second and more to load. */
const TEMPORAL_CLIENT = ['@temporalio/client', '@grpc/grpc-js'];
const DATABASE = ['@mikro-orm/core', '@mikro-orm/postgresql'];

describe('the operator’s command line', () => {
  let env: NodeJS.ProcessEnv;

  before(async () => {
    env = await operatorEnvironment();
  });

  async function loadedFor(...commandLines: string[][]): Promise<string[]> {
    const child = promisify(execFile)(process.execPath, [SCRIPT, JSON.stringify(commandLines)], {
      env: { PATH: process.env.PATH, ...env },
    });
    return JSON.parse((await child).stdout);
  }

  const among = (loaded: string[], packages: string[]) => packages.filter((one) => loaded.includes(one));

  it('loads neither the database nor Temporal’s client for --help', async () => {
    assert.deepEqual(among(await loadedFor(['--help']), [...DATABASE, ...TEMPORAL_CLIENT]), []);
  });

  it('loads no Temporal client for verbs that need only the database', async () => {
    const operate = operateIn(env);
    const partner = (await operate('partner', 'create', '--name', 'Acme')).json.id;
    const key = (await operate('key', 'create', partner, '--mode', 'test')).json.id;
    const loaded = await loadedFor(
      ['partner', 'create', '--name', 'Other'],
      ['partner', 'list'],
      ['partner', 'show', partner],
      ['partner', 'update', partner, '--name', 'Acme Ltd'],
      ['partner', 'fees', partner],
      ['partner', 'limits', partner],
      ['partner', 'adjust', partner, '--mode', 'test', '--amount', '5', '--reason', 'a gift'],
      ['key', 'create', partner, '--mode', 'live'],
      ['key', 'list', partner],
      ['key', 'revoke', key],
      ['product', 'set-current', 'ONE', '--bin', '424242', '--network', 'visa'],
      ['product', 'list'],
      ['webhook-endpoint', 'set', partner, '--url', 'https://hooks.example.com/'],
      ['webhook-endpoint', 'show', partner],
      ['webhook', 'list'],
      ['webhook', 'requeue', '--partner', partner, '--yes'],
      ['ledger', 'check'],
      ['ledger', 'balance', partner, '--mode', 'test'],
      ['deposit', 'list'],
      ['attention', 'list'],
      ['audit', 'list'],
      ['card', 'list'],
      ...['card', 'topup', 'withdrawal', 'deposit', 'tron', 'transaction', 'network-event'].map((noun) => [
        noun,
        '--help',
      ]),
    );
    assert.deepEqual(among(loaded, [...DATABASE, ...TEMPORAL_CLIENT]), DATABASE);
  });
});
