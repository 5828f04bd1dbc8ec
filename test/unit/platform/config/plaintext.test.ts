import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse as parseYaml } from 'yaml';
import { readCodecConfig } from '../../../../platform/config/codec.ts';
import { readOperatorConfig, readTemporalConfig } from '../../../../platform/config/operator.ts';
import { plaintextProblems } from '../../../../platform/config/plaintext.ts';
import { readApiConfig, readMigrationConfig, readWorkerConfig } from '../../../../platform/config/service.ts';
import { problemsOf } from '../../../support/config-problems.ts';
import {
  kubernetesResources,
  type Resource,
  readDeployed,
  secretFiles,
  variablesRead,
} from '../../../support/deployed.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const KEYS = `k1:${Buffer.alloc(32, 7).toString('base64')}`;
const PLAIN = {
  DATABASE_URL: 'postgres://user:pass@db:5432/cards',
  TEMPORAL_ADDRESS: 'temporal:7233',
  ENCRYPTION_KEYS: KEYS,
};
const LOCAL = {
  DATABASE_URL: 'postgres://user:pass@127.0.0.1:5432/cards',
  TEMPORAL_ADDRESS: 'localhost:7233',
  ENCRYPTION_KEYS: KEYS,
};
const CODEC = {
  ...{ CODEC_KEYS: KEYS, CODEC_JWT_ISSUER: 'https://login.example/', CODEC_JWT_AUDIENCE: 'ui' },
  CODEC_JWKS_URL: 'http://login.example/jwks.json',
};

/** The variables with a problem, each with the one that accepts it. */
function refused(env: Record<string, string>, read: (env: NodeJS.ProcessEnv) => unknown): string[][] {
  return problemsOf(env, read).map((problem) => [
    problem.split(':')[0] ?? '',
    /ALLOW_\w+=true/.exec(problem)?.[0] ?? problem,
  ]);
}

const POSTGRES = ['DATABASE_URL', 'ALLOW_PLAINTEXT_POSTGRES=true'];
const TEMPORAL = ['TEMPORAL_ADDRESS', 'ALLOW_PLAINTEXT_TEMPORAL=true'];
const HISTORIES = ['CODEC_KEYS', 'ALLOW_PLAINTEXT_HISTORIES=true'];
const JWKS = ['CODEC_JWKS_URL', 'ALLOW_PLAINTEXT_JWKS=true'];

describe('a start that would send or store something in clear', () => {
  it('is refused by each process that would do it, which names every reason and way out at once', () => {
    const env = {
      ...{ ...PLAIN, DATABASE_DIRECT_URL: 'postgres://pg:5432/cards', NODE_ENV: 'production' },
      ...{ READ_DATABASE_URL: 'postgres://standby/cards', OPERATOR: 'ada' },
    };
    const direct = ['DATABASE_DIRECT_URL', 'ALLOW_PLAINTEXT_POSTGRES=true'];
    const standby = ['READ_DATABASE_URL', 'ALLOW_PLAINTEXT_POSTGRES=true'];
    assert.deepEqual(refused(env, readApiConfig), [POSTGRES, direct, standby, TEMPORAL, HISTORIES]);
    assert.deepEqual(refused(env, readWorkerConfig), [POSTGRES, direct, TEMPORAL, HISTORIES]);
    assert.deepEqual(refused(env, readOperatorConfig), [POSTGRES, TEMPORAL, HISTORIES]);
    assert.deepEqual(refused(env, readMigrationConfig), [POSTGRES, TEMPORAL]);
    assert.deepEqual(refused(env, readTemporalConfig), [TEMPORAL]);
    assert.deepEqual(refused({ ...env, ...CODEC }, readCodecConfig), [JWKS]);
    // It uses neither Temporal nor its keys.
    assert.deepEqual(refused({ ...env, API_PARTS: 'reveal' }, readApiConfig), [POSTGRES, direct]);
  });

  it('is accepted if its way out is set, and no other', () => {
    const env = {
      ...{ ...PLAIN, NODE_ENV: 'production', ALLOW_PLAINTEXT_POSTGRES: 'true' },
      ...{ ALLOW_PLAINTEXT_TEMPORAL: 'true', ALLOW_PLAINTEXT_HISTORIES: 'true' },
    };
    assert.deepEqual(refused(env, readWorkerConfig), []);
    assert.deepEqual(refused({ ...env, ALLOW_PLAINTEXT_POSTGRES: '' }, readApiConfig), [POSTGRES]);
    assert.deepEqual(refused({ ...env, ALLOW_PLAINTEXT_TEMPORAL: 'false' }, readApiConfig), [TEMPORAL]);
    assert.deepEqual(refused({ ...env, ALLOW_PLAINTEXT_HISTORIES: '' }, readApiConfig), [HISTORIES]);
    assert.deepEqual(refused({ ...CODEC, ALLOW_PLAINTEXT_JWKS: 'true' }, readCodecConfig), []);
    assert.deepEqual(problemsOf({ ...LOCAL, ALLOW_PLAINTEXT_POSTGRES: 'yes' }, readApiConfig), [
      'ALLOW_PLAINTEXT_POSTGRES: must be true or false',
    ]);
  });

  it('is not one that stays on this machine, by loopback or a Unix socket', () => {
    const databases = ['127.0.0.1', '127.9.9.9', 'localhost', '[::1]', '%2Fvar%2Frun%2Fpostgresql'].map(
      (host) => `postgres://user:pass@${host}/cards`,
    );
    for (const DATABASE_URL of [...databases, 'postgres:///cards?host=/var/run/postgresql'])
      assert.deepEqual(refused({ ...LOCAL, DATABASE_URL }, readApiConfig), [], DATABASE_URL);
    for (const TEMPORAL_ADDRESS of ['127.0.0.1:7233', '[::1]:7233', '127.0.0.1'])
      assert.deepEqual(refused({ ...LOCAL, TEMPORAL_ADDRESS }, readApiConfig), [], TEMPORAL_ADDRESS);
    const elsewhere = ['127.0.0.1.example:7233', '10.0.0.1:7233', '[::]:7233', 'localhost.example'];
    for (const TEMPORAL_ADDRESS of elsewhere)
      assert.deepEqual(refused({ ...LOCAL, TEMPORAL_ADDRESS }, readApiConfig), [TEMPORAL], TEMPORAL_ADDRESS);
  });

  it('is judged by what the driver makes of a URL of PostgreSQL', () => {
    const of = (DATABASE_URL: string) => refused({ ...LOCAL, DATABASE_URL }, readApiConfig);
    for (const mode of ['require', 'verify-ca', 'verify-full', 'no-verify', 'prefer'])
      assert.deepEqual(of(`${PLAIN.DATABASE_URL}?sslmode=${mode}`), [], mode);
    for (const parameters of ['?ssl=true', '?sslnegotiation=direct', '?uselibpqcompat=true&sslmode=require'])
      assert.deepEqual(of(`${PLAIN.DATABASE_URL}${parameters}`), [], parameters);
    for (const parameters of ['?sslmode=disable', '?ssl=0', '?uselibpqcompat=true&sslmode=disable'])
      assert.deepEqual(of(`${PLAIN.DATABASE_URL}${parameters}`), [POSTGRES], parameters);
    assert.deepEqual(of(`${LOCAL.DATABASE_URL}?host=db`), [POSTGRES]);
    assert.match(of(`${PLAIN.DATABASE_URL}?ssl=false`)[0]?.[1] ?? '', /ssl must be true or 0/);
    const missing = of(`${PLAIN.DATABASE_URL}?sslmode=verify-full&sslrootcert=/nowhere/ca.pem`);
    assert.match(missing[0]?.[1] ?? '', /can't be read \(ENOENT\)/);
  });

  it('is judged by what the SDK makes of the variables of Temporal', () => {
    const of = (env: Record<string, string>) => refused({ ...LOCAL, ...env }, readApiConfig);
    const address = { TEMPORAL_ADDRESS: 'temporal:7233' };
    assert.deepEqual(of({ ...address, TEMPORAL_TLS: 'true' }), []);
    assert.deepEqual(of({ ...address, TEMPORAL_TLS_SERVER_NAME: 'temporal.example' }), []);
    assert.deepEqual(of({ ...address, TEMPORAL_API_KEY: 'key' }), []);
    assert.deepEqual(of({ ...address, TEMPORAL_API_KEY: 'key', TEMPORAL_TLS: 'false' }), [TEMPORAL]);
  });

  it('is, for what Temporal stores, only one in production', () => {
    assert.deepEqual(refused(LOCAL, readApiConfig), []);
    assert.deepEqual(refused({ ...LOCAL, NODE_ENV: 'production' }, readApiConfig), [HISTORIES]);
    assert.deepEqual(refused({ ...LOCAL, NODE_ENV: 'production', CODEC_KEYS: KEYS }, readApiConfig), []);
    const { TEMPORAL_ADDRESS: _unused, ...noTemporal } = LOCAL;
    assert.deepEqual(
      refused({ ...noTemporal, NODE_ENV: 'production', OPERATOR: 'ada' }, readOperatorConfig),
      [],
    );
  });

  it('is, for keys of access tokens, one over http from another machine', () => {
    for (const url of ['https://login.example/jwks.json', 'http://127.0.0.1:8080/jwks.json'])
      assert.deepEqual(refused({ ...CODEC, CODEC_JWKS_URL: url }, readCodecConfig), [], url);
    assert.deepEqual(refused(CODEC, readCodecConfig), [JWKS]);
  });

  it('is not one of the deployments in deploy/ and docker-compose.yml', () => {
    const problemsWith = (entry: string, env: Record<string, string>, DATABASE_URL: string) => {
      const read = variablesRead(entry, env);
      const secrets = Object.fromEntries([...secretFiles(env).keys()].map((name) => [name, 'secret']));
      const set = { NODE_ENV: 'production', ...env, ...secrets, DATABASE_URL };
      return plaintextProblems(set, (name) => read.includes(name));
    };
    const { services }: { services: Record<string, Resource> } = parseYaml(
      readDeployed('docker-compose.yml'),
      { merge: true },
    );
    const url = 'postgresql://login:password@postgres:5432/card_issuing';
    for (const name of ['api', 'worker', 'operator', 'migrate']) {
      const { command = [], entrypoint = [], environment } = services[name];
      const words: string[] = [...entrypoint, ...command];
      const entry = words.find((word) => word.endsWith('.ts')) ?? 'api/main.ts';
      assert.deepEqual(problemsWith(entry, environment, url), [], name);
    }
    const [, { data }] = kubernetesResources('config') as [Resource, Resource];
    const files = { CODEC_KEYS_FILE: '/run/secrets/codec_keys' };
    assert.deepEqual(problemsWith('worker/main.ts', { ...data, ...files }, `${url}?sslmode=verify-full`), []);
  });

  it('ends each process at once, with the reasons and without a value', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'plaintext-')), 'database_url');
    writeFileSync(file, 'postgres://user:hunter2@db:5432/cards\n');
    const env = {
      ...{ PATH: process.env.PATH, NODE_ENV: 'production', OPERATOR: 'ada' },
      ...{ DATABASE_URL_FILE: file, TEMPORAL_ADDRESS: 'temporal:7233', ENCRYPTION_KEYS: KEYS },
    };
    const run = (args: string[], own: NodeJS.ProcessEnv = {}) => {
      const { status, stderr, stdout } = spawnSync(process.execPath, args, {
        cwd: ROOT,
        encoding: 'utf8',
        env: { ...env, ...own },
      });
      assert.ok(!`${stderr}${stdout}`.includes('hunter2'), args[0]);
      assert.equal(status, 1, `${args[0]}: ${stderr}`);
      return `${stderr}${stdout}`;
    };
    const postgres = /DATABASE_URL: leads to another machine without TLS.*ALLOW_PLAINTEXT_POSTGRES=true/;
    for (const args of [['api/main.ts'], ['worker/main.ts'], ['operator/main.ts', 'attention', 'list']]) {
      const output = run(args);
      assert.match(output, postgres);
      assert.match(output, /TEMPORAL_ADDRESS: leads to another machine.*ALLOW_PLAINTEXT_TEMPORAL=true/);
      assert.match(output, /CODEC_KEYS: is required in production.*ALLOW_PLAINTEXT_HISTORIES=true/);
    }
    assert.match(run(['operator/migrate.ts']), postgres);
    assert.match(run(['operator/codec/main.ts'], CODEC), /CODEC_JWKS_URL: leads to another machine without/);
  });
});
