import assert from 'node:assert/strict';
import { readSettings } from '../../../../dev/stack/settings.ts';
import { problemsOf } from '../../../support/config-problems.ts';

describe('the settings of the local stack', () => {
  it('have the documented defaults, and treat an empty value as none', () => {
    const settings = readSettings({ PORT: '', TEMPORAL_ADDRESS: '' });
    const { DATA_DIR, HOST, PORT, TEMPORAL_NAMESPACE } = settings;
    assert.deepEqual([DATA_DIR, HOST, PORT, TEMPORAL_NAMESPACE], ['.data', '127.0.0.1', 3000, 'default']);
    for (const name of [
      'POSTGRES_PORT',
      'TEMPORAL_PORT',
      'TEMPORAL_UI_PORT',
      'WORKER_PORT',
      'TEMPORAL_ADDRESS',
      'TEMPORAL_CLI',
      'DATABASE_URL',
      'ENCRYPTION_KEYS',
      'CODEC_KEYS',
    ] as const)
      assert.equal(settings[name], undefined, name);
  });

  it("are reported with the service's problems, each once and without its value", () => {
    const bad = {
      ...{ PORT: 'x', OPERATIONS_HOST: '0.0.0.0', OPERATIONS_PORT: '-1', DATABASE_URL: 'mysql://db' },
      ...{ POSTGRES_PORT: 'x', TEMPORAL_PORT: '0', TEMPORAL_UI_PORT: '1.5', HOST: '0.0.0.0' },
      ...{ ENCRYPTION_KEYS: 'hunter2', WEBHOOK_TIMEOUT: 'soon', LOG_LEVEL: 'loud', RATE_LIMIT_BURST: 'x' },
      ...{ CARD_NETWROK: 'simulated', PRODUCT_BIN: '1', TRON_NETWORK: 'main', TRON_XPUB: 'xprv9s21ZrQH' },
      ...{ TRON_NODE_URLS: 'tron:8090', DEPOSIT_ADDRESS_TTL: '8 hours', TRON_SCAN_INTERVAL: '0s' },
    };
    const problems = problemsOf(bad, readSettings);
    assert.deepEqual(
      problems.map((problem) => problem.split(': ')[0]).sort(),
      [...Object.keys(bad), 'PRODUCT_CODE, PRODUCT_BIN, PRODUCT_NETWORK'].sort(),
    );
    assert.doesNotMatch(problems.join('\n'), /hunter2|xprv9/);
  });

  it('need neither a database nor keys, but refuse wrong ones', () => {
    assert.deepEqual(problemsOf({}, readSettings), []);
    const [problem] = problemsOf(
      { TEMPORAL_ADDRESS: 'temporal:7233', TEMPORAL_TLS_CLIENT_CERT_PATH: '/nowhere/cert.pem' },
      readSettings,
    );
    assert.match(problem ?? '', /TEMPORAL_TLS_….*\/nowhere\/cert\.pem/);
  });

  for (const [flag, options, wrong, setByFlag] of [
    [
      '--with-tron',
      { withTron: true },
      { DEPOSIT_ADDRESS_TTL: 'soon' },
      { TRON_NETWORK: 'nile', TRON_XPUB: 'xprv9s21', TRON_SCAN_INTERVAL: '5s' },
    ],
    [
      '--network',
      { network: 'increase' },
      { NETWORK_KEY_LIFETIME: 'soon' },
      { CARD_NETWORK: 'increase', INCREASE_API_KEY: 'key' },
    ],
  ] as const) {
    it(`refuse, with ${flag}, each variable that the flag sets, and check the rest as usual`, () => {
      const read = (env: NodeJS.ProcessEnv) => readSettings(env, options);
      const problems = problemsOf({ ...setByFlag, ...wrong, TRON_API_KEY: '' }, read);
      for (const name of Object.keys(setByFlag))
        assert.ok(problems.includes(`${name}: ${flag} sets it; unset it, or start without ${flag}`), name);
      const [name = ''] = Object.keys(wrong);
      assert.ok(problems.some((problem) => problem.startsWith(`${name}: `)));
      assert.ok(!problems.some((problem) => problem.startsWith('TRON_API_KEY: ')));
      assert.deepEqual(problemsOf({}, read), []);
    });
  }
});
