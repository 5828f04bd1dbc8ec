import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readOperatorConfig } from '../../../../platform/config/operator.ts';
import { ConfigurationError } from '../../../../platform/config/read-environment.ts';
import { column } from '../../../support/column.ts';

const STACK = {
  databaseUrl: 'postgres://local:secret@127.0.0.1:5432/service',
  workerDatabaseUrl: 'postgres://worker:secret@127.0.0.1:5432/service',
  ownerDatabaseUrl: 'postgres://owner:secret@127.0.0.1:5432/service',
  operatorDatabaseUrl: 'postgres://operator:secret@127.0.0.1:5432/service',
  temporalAddress: '127.0.0.1:7233',
  temporalNamespace: 'local',
  apiUrl: 'http://127.0.0.1:3000',
};
const KEYS = `k1:${randomBytes(32).toString('base64')}`;

describe('readOperatorConfig', () => {
  let dataDir: string;

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'card-issuing-operator-'));
    await writeFile(join(dataDir, 'stack.json'), JSON.stringify(STACK));
    await writeFile(join(dataDir, 'secrets.json'), JSON.stringify({ encryptionKeys: KEYS }));
  });

  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  for (const [what, databaseUrl] of [
    ['is not set', undefined],
    ['is the local stack’s login', STACK.databaseUrl],
    ['is the owner’s login', STACK.ownerDatabaseUrl],
    ['is the operator’s login', STACK.operatorDatabaseUrl],
  ] as const) {
    it(`uses the local stack's operator login if DATABASE_URL ${what}`, () => {
      const config = readOperatorConfig({ DATA_DIR: dataDir, DATABASE_URL: databaseUrl });
      assert.equal(config.databaseUrl, STACK.operatorDatabaseUrl);
      assert.equal(config.temporal?.connectionOptions.address, STACK.temporalAddress);
      assert.equal(config.temporal?.namespace, 'local');
      assert.deepEqual(column(config.encryptionKeys ?? [], 'id'), ['k1']);
      assert.equal(config.issuanceDeadlineMs, 86_400_000);
      assert.equal(config.webhookAllowLoopbackHttp, true);
      assert.equal(config.cardNetwork, 'simulated');
    });
  }

  it('ignores the local stack if DATABASE_URL names another database', () => {
    const DATABASE_URL = 'postgres://db.example/service?sslmode=verify-full';
    const config = readOperatorConfig({ DATA_DIR: dataDir, DATABASE_URL });
    assert.deepEqual(
      [config.databaseUrl, config.temporal, config.encryptionKeys, config.cardNetwork],
      [DATABASE_URL, null, null, 'none'],
    );
  });

  it('prefers the environment to the local stack', () => {
    const config = readOperatorConfig({
      DATA_DIR: dataDir,
      TEMPORAL_ADDRESS: 'temporal.example:7233',
      TEMPORAL_TLS: 'true',
      ENCRYPTION_KEYS: `k2:${randomBytes(32).toString('base64')}`,
      ISSUANCE_DEADLINE: '2h',
      TASK_QUEUE_PREFIX: 'blue-',
      CARD_NETWORK: 'none',
    });
    assert.equal(config.cardNetwork, 'none');
    assert.equal(config.temporal?.connectionOptions.address, 'temporal.example:7233');
    assert.deepEqual(column(config.encryptionKeys ?? [], 'id'), ['k2']);
    assert.deepEqual([config.issuanceDeadlineMs, config.taskQueuePrefix], [7_200_000, 'blue-']);
  });

  const refuses = (env: NodeJS.ProcessEnv, ...problems: RegExp[]) =>
    assert.throws(
      () => readOperatorConfig(env),
      (error) => {
        assert.ok(error instanceof ConfigurationError);
        for (const problem of problems) assert.match(error.message, problem);
        assert.doesNotMatch(error.message, /hidden/);
        return true;
      },
    );

  it('refuses a misspelt DATABASE_URL instead of using the local stack', () => {
    const misspelt = { DATABSE_URL: 'postgres://production/cards' };
    for (const DATA_DIR of [dataDir, join(dataDir, 'empty')])
      refuses({ DATA_DIR, ...misspelt }, /DATABSE_URL: is not a known variable; did you mean DATABASE_URL\?/);
  });

  it('says how to start a local stack if there is none', () => {
    const none = /start one with npm start, or set DATABASE_URL/;
    refuses({ DATA_DIR: join(dataDir, 'empty') }, none);
  });

  it('names a file that npm start did not write, without quoting it', async () => {
    await writeFile(join(dataDir, 'secrets.json'), '{"encryptionKeys": 5, "hidden": "hidden"}');
    refuses({ DATA_DIR: dataDir }, /secrets\.json/);
  });

  it('names every problem in the environment, without the values', () => {
    const wrong = { ENCRYPTION_KEYS: 'hidden', ISSUANCE_DEADLINE: 'hidden', CARD_NETWROK: 'hidden' };
    const names = ['DATABASE_URL', ...Object.keys(wrong)].map((name) => new RegExp(`${name}: `));
    refuses({ ...wrong, DATABASE_URL: 'mysql://hidden' }, ...names);
  });

  it('requires OPERATOR in production, where everybody is the same system user', () => {
    const env = { DATA_DIR: dataDir, NODE_ENV: 'production', CODEC_KEYS: KEYS };
    assert.throws(() => readOperatorConfig(env), /OPERATOR: is required/);
    assert.equal(readOperatorConfig({ ...env, OPERATOR: 'ada@example.com' }).operator, 'ada@example.com');
    assert.equal(readOperatorConfig({ DATA_DIR: dataDir }).operator, null);
    assert.throws(() => readOperatorConfig({ DATA_DIR: dataDir, OPERATOR: 'Ada L' }), /OPERATOR: must be/);
  });
});
