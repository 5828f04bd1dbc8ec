import assert from 'node:assert/strict';
import { ConfigurationError, readConfig, readMigrationConfig } from '../config.ts';

const SECRET = Buffer.alloc(32, 7);
const KEY = `k1:${SECRET.toString('base64')}`;
const NEEDED = {
  DATABASE_URL: 'postgres://user:pass@db:5432/cards',
  TEMPORAL_ADDRESS: 'temporal:7233',
  ENCRYPTION_KEYS: KEY,
};

/** The problems as the process would print them, one a line. */
function problemsOf(
  env: Record<string, string>,
  read: (env: NodeJS.ProcessEnv) => unknown = readConfig,
): string[] {
  try {
    read(env);
  } catch (error) {
    assert.ok(error instanceof ConfigurationError, String(error));
    const [head, ...problems] = error.message.split('\n  ');
    assert.equal(head, 'The configuration is not usable. Correct these environment variables:');
    return problems;
  }
  return [];
}

describe('readConfig', () => {
  it('takes what it needs and gives the rest its defaults', () => {
    const { temporal, ...config } = readConfig(NEEDED);
    assert.deepEqual(
      [temporal.connectionOptions?.address, temporal.connectionOptions?.tls, temporal.namespace],
      ['temporal:7233', undefined, undefined],
    );
    assert.deepEqual(config, {
      host: '127.0.0.1',
      port: 3000,
      databaseUrl: NEEDED.DATABASE_URL,
      taskQueuePrefix: '',
      encryptionKeys: [{ id: 'k1', secret: SECRET }],
      cardNetwork: 'none',
      cardCreationWaitMs: 8_000,
      issuanceDeadlineMs: 86_400_000,
      rateLimitPerSecond: 100,
      rateLimitBurst: 200,
      logLevel: 'info',
    });
  });

  it('takes every variable', () => {
    const config = readConfig({
      ...NEEDED,
      ...{ HOST: '0.0.0.0', PORT: '80', CARD_NETWORK: 'simulated', CARD_CREATION_WAIT_MS: '250' },
      ...{ ISSUANCE_DEADLINE: '90m', RATE_LIMIT_PER_SECOND: '0', RATE_LIMIT_BURST: '5', LOG_LEVEL: 'warn' },
      ...{ TASK_QUEUE_PREFIX: 'eu-', TEMPORAL_NAMESPACE: 'ns', TEMPORAL_API_KEY: 'secret' },
    });
    assert.deepEqual(
      [config.host, config.port, config.cardNetwork, config.cardCreationWaitMs, config.issuanceDeadlineMs],
      ['0.0.0.0', 80, 'simulated', 250, 5_400_000],
    );
    assert.deepEqual(
      [config.rateLimitPerSecond, config.rateLimitBurst, config.logLevel, config.taskQueuePrefix],
      [0, 5, 'warn', 'eu-'],
    );
    const { namespace, connectionOptions } = config.temporal;
    assert.deepEqual([namespace, connectionOptions?.apiKey, connectionOptions?.tls], ['ns', 'secret', true]);
  });

  it('takes an empty value for unset', () => {
    const config = readConfig({
      ...NEEDED,
      PORT: '',
      HOST: '',
      LOG_LEVEL: '',
      CARD_NETWORK: '',
      CARD_NETWROK: '',
    });
    assert.deepEqual([config.port, config.host, config.logLevel], [3000, '127.0.0.1', 'info']);
    assert.deepEqual(problemsOf({ ...NEEDED, DATABASE_URL: '' }), ['DATABASE_URL: is required']);
  });

  it('names every problem at once', () => {
    assert.deepEqual(
      problemsOf({
        ...{ DATABASE_URL: 'mysql://db', PORT: '0', LOG_LEVEL: 'loud', ISSUANCE_DEADLINE: '1 day' },
        ...{
          CARD_NETWORK: 'visa',
          CARD_CREATION_WAIT_MS: '1e3',
          TASK_QUEUE_PREFIX: 'a b',
          PRODUCT_BIN: '12',
        },
        ...{ RATE_LIMIT_PER_SECOND: '-1', RATE_LIMIT_BURST: '1.5', CARD_NETWROK: 'x', WEBHOOK_TIMOUT: '1s' },
        ...{ TEMPORAL_TLS: 'yes' },
      }).map((problem) => problem.split(':')[0]),
      [
        ...[
          'PORT',
          'DATABASE_URL',
          'TEMPORAL_ADDRESS',
          'TEMPORAL_TLS',
          'TASK_QUEUE_PREFIX',
          'ENCRYPTION_KEYS',
        ],
        ...['CARD_NETWORK', 'PRODUCT_BIN', 'CARD_CREATION_WAIT_MS', 'ISSUANCE_DEADLINE'],
        ...['RATE_LIMIT_PER_SECOND', 'RATE_LIMIT_BURST', 'LOG_LEVEL', 'CARD_NETWROK', 'WEBHOOK_TIMOUT'],
        'PRODUCT_CODE, PRODUCT_BIN, PRODUCT_NETWORK',
      ],
    );
  });

  it('says what a value has to be', () => {
    const problem = (name: string, value: string) => problemsOf({ ...NEEDED, [name]: value })[0];
    assert.equal(problem('PORT', '65536'), 'PORT: must be a whole number from 1 to 65535');
    assert.equal(problem('PORT', '+1'), 'PORT: must be a whole number from 1 to 65535');
    assert.equal(
      problem('CARD_CREATION_WAIT_MS', '0'),
      'CARD_CREATION_WAIT_MS: must be a whole number from 1 to 60000',
    );
    assert.equal(
      problem('ISSUANCE_DEADLINE', '5'),
      'ISSUANCE_DEADLINE: must be a duration: 250ms, 30s, 5m or 8h',
    );
    assert.equal(problem('TRON_NODES', 'x'), 'TRON_NODES: there is no such variable; is it misspelt?');
  });

  it('lets the variables of other programs and of later features be', () => {
    const env = {
      ...NEEDED,
      PATH: '/bin',
      WEBHOOK_TIMEOUT: '10s',
      TRON_NETWORK: 'nile',
      DEPOSIT_ADDRESS_TTL: '8h',
    };
    assert.deepEqual(problemsOf({ ...env, MY_CARD_X: '1' }), []);
  });

  it('takes several keys, the first one first, and only keys of 32 bytes under different ids', () => {
    const other = `new:${Buffer.alloc(32, 8).toString('base64')}`;
    const ids = readConfig({ ...NEEDED, ENCRYPTION_KEYS: `${other}, ${KEY}` }).encryptionKeys.map(
      (key) => key.id,
    );
    assert.deepEqual(ids, ['new', 'k1']);
    for (const invalid of [
      'k1',
      'k1:',
      'k1:AAAA',
      `k1:${Buffer.alloc(31).toString('base64')}`,
      `${KEY},`,
      `:${KEY}`,
    ]) {
      assert.match(
        problemsOf({ ...NEEDED, ENCRYPTION_KEYS: invalid })[0] ?? '',
        /must be id:base64\(32 bytes\)/,
      );
    }
    assert.match(
      problemsOf({ ...NEEDED, ENCRYPTION_KEYS: `${KEY},${KEY}` })[0] ?? '',
      /must not name one key id twice/,
    );
  });

  it('repeats no value in what it says: some of them are secret', () => {
    const secret = 'hunter2-hunter2';
    const problems = problemsOf({
      ...{ DATABASE_URL: `mysql://u:${secret}@db`, ENCRYPTION_KEYS: `k:${secret}`, PORT: secret },
      ...{ ISSUANCE_DEADLINE: secret, CARD_NETWORK: secret, TRON_KEY: secret, PRODUCT_BIN: secret },
      ...{
        TEMPORAL_TLS: secret,
        LOG_LEVEL: secret,
        RATE_LIMIT_BURST: secret,
        TASK_QUEUE_PREFIX: `${secret} x`,
      },
    });
    assert.ok(problems.length >= 11);
    assert.ok(!problems.join('\n').includes(secret));
  });

  it("says which file of Temporal's configuration can't be read", () => {
    const [problem] = problemsOf({ ...NEEDED, TEMPORAL_TLS_CLIENT_CERT_PATH: '/nowhere/cert.pem' });
    assert.match(problem ?? '', /TEMPORAL_TLS_….*\/nowhere\/cert\.pem/);
  });
});

describe('readMigrationConfig', () => {
  const DATABASE = { DATABASE_URL: NEEDED.DATABASE_URL };

  it('needs the database alone', () => {
    assert.deepEqual(readMigrationConfig(DATABASE), {
      databaseUrl: DATABASE.DATABASE_URL,
      firstProduct: null,
    });
    assert.deepEqual(problemsOf({}, readMigrationConfig), ['DATABASE_URL: is required']);
  });

  it('takes a first product, whole or not at all', () => {
    const product = { PRODUCT_CODE: 'USD', PRODUCT_BIN: '424242', PRODUCT_NETWORK: 'visa' };
    assert.deepEqual(readMigrationConfig({ ...DATABASE, ...product }).firstProduct, {
      ...{ code: 'USD', bin: '424242', network: 'visa' },
    });
    for (const missing of Object.keys(product)) {
      assert.deepEqual(problemsOf({ ...DATABASE, ...product, [missing]: '' }, readMigrationConfig), [
        'PRODUCT_CODE, PRODUCT_BIN, PRODUCT_NETWORK: set all three or none',
      ]);
    }
  });
});
