import assert from 'node:assert/strict';
import { problemsOf } from './support/config-problems.ts';

const SECRET = Buffer.alloc(32, 7);
const KEY = `k1:${SECRET.toString('base64')}`;
const NEEDED = {
  DATABASE_URL: 'postgres://user:pass@db:5432/cards',
  TEMPORAL_ADDRESS: 'temporal:7233',
  ENCRYPTION_KEYS: KEY,
};

describe('what a configuration that is not usable says', () => {
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
    for (const timeout of ['0s', '21s', '30s', '5m']) {
      assert.equal(
        problem('WEBHOOK_TIMEOUT', timeout),
        'WEBHOOK_TIMEOUT: must be a duration from 1ms to 20s, since an attempt holds a place of its endpoint for as long',
      );
    }
    assert.equal(problem('WEBHOOK_TIMEOUT', '20s'), undefined);
    assert.equal(problem('TRON_NODES', 'x'), 'TRON_NODES: there is no such variable; is it misspelt?');
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
