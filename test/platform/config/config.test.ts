import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  readApiConfig,
  readConfig,
  readMigrationConfig,
  readWorkerConfig,
} from '../../../platform/config/service.ts';
import { problemsOf } from '../../support/config-problems.ts';
import { TEST_TRON } from '../../support/deposits/seed-deposits.ts';

const SECRET = Buffer.alloc(32, 7);
const KEY = `k1:${SECRET.toString('base64')}`;
const NEEDED = {
  DATABASE_URL: 'postgres://user:pass@127.0.0.1:5432/cards',
  TEMPORAL_ADDRESS: '127.0.0.1:7233',
  ENCRYPTION_KEYS: KEY,
};

describe('readConfig', () => {
  it('accepts workflows that are already bundled', () => {
    assert.deepEqual(readConfig({ ...NEEDED, WORKFLOW_BUNDLE: '/app/bundle.js' }).workflowBundle, {
      codePath: '/app/bundle.js',
    });
  });

  it('reads a worker version from two variables, which belong together', () => {
    const version = { TEMPORAL_DEPLOYMENT_NAME: 'production/cards', TEMPORAL_WORKER_BUILD_ID: 'v1.4.2' };
    assert.deepEqual(readConfig({ ...NEEDED, ...version }).workerVersion, {
      deploymentName: 'production/cards',
      buildId: 'v1.4.2',
    });
    assert.deepEqual(problemsOf({ ...NEEDED, ...version, TEMPORAL_WORKER_BUILD_ID: '' }), [
      'TEMPORAL_DEPLOYMENT_NAME, TEMPORAL_WORKER_BUILD_ID: set both or neither',
    ]);
  });

  it('reads a secret from the file that a variable names', () => {
    const folder = mkdtempSync(join(tmpdir(), 'config-'));
    const files = Object.fromEntries(
      Object.entries({ DATABASE_URL: NEEDED.DATABASE_URL, ENCRYPTION_KEYS: KEY }).map(([name, value]) => {
        writeFileSync(join(folder, name), `${value}\n`);
        return [`${name}_FILE`, join(folder, name)];
      }),
    );
    const { databaseUrl, encryptionKeys } = readConfig({
      TEMPORAL_ADDRESS: NEEDED.TEMPORAL_ADDRESS,
      ...files,
    });
    assert.deepEqual([databaseUrl, encryptionKeys], [NEEDED.DATABASE_URL, [{ id: 'k1', secret: SECRET }]]);
  });

  it('needs few variables, and uses defaults for the others', () => {
    const { temporal, ...config } = readConfig(NEEDED);
    assert.deepEqual(
      [temporal.connectionOptions?.address, temporal.connectionOptions?.tls, temporal.namespace],
      ['127.0.0.1:7233', undefined, undefined],
    );
    assert.deepEqual(config, {
      host: '127.0.0.1',
      port: 3000,
      apiParts: ['partner', 'workbench', 'reveal', 'network'],
      publicUrl: 'http://127.0.0.1:3000',
      operations: null,
      worker: { host: '127.0.0.1', port: 3001, queues: ['cards', 'webhooks', 'deposits'] },
      databaseUrl: NEEDED.DATABASE_URL,
      databaseDirectUrl: null,
      readDatabaseUrl: null,
      reportLimits: { stallMs: 60_000, maxMs: 3_600_000 },
      responseLimits: { stallMs: 10_000, maxMs: 60_000, maxUnsentBytes: 4 * 1_048_576 },
      allowOwnerLogin: false,
      taskQueuePrefix: '',
      drainDelayMs: 0,
      workerVersion: null,
      encryptionKeys: [{ id: 'k1', secret: SECRET }],
      codecKeys: null,
      tracing: null,
      cardNetwork: 'none',
      increase: null,
      lithic: null,
      networkKeyLifetimeMs: 72_000_000,
      cardCreationWaitMs: 8_000,
      issuanceDeadlineMs: 86_400_000,
      topUpDeadlineMs: 86_400_000,
      withdrawalDeadlineMs: 86_400_000,
      authorizationTtlMs: 604_800_000,
      webhookDelaysMs: [30_000, 300_000, 1_800_000, 7_200_000],
      webhookTimeoutMs: 10_000,
      webhookAllowLoopbackHttp: false,
      rateLimitPerSecond: 100,
      rateLimitBurst: 200,
      accountConcurrency: 16,
      storedBytesPerDay: 2_000_000_000,
      trustedProxies: [],
      ledgerCheckAt: { hour: 3, minute: 0 },
      depositAddressTtlMs: 8 * 3_600_000,
      tron: null,
      checkResponses: false,
      logLevel: 'info',
    });
  });

  it('treats DATABASE_URL as a pooler if DATABASE_DIRECT_URL is another URL', () => {
    const direct = 'postgres://user:pass@db:5433/cards?sslmode=verify-full';
    const config = (DATABASE_DIRECT_URL: string) => readConfig({ ...NEEDED, DATABASE_DIRECT_URL });
    assert.equal(config(direct).databaseDirectUrl, direct);
    assert.equal(config(NEEDED.DATABASE_URL).databaseDirectUrl, null);
    assert.equal(config('').databaseDirectUrl, null);
    assert.equal(readConfig({ ...NEEDED, ALLOW_OWNER_LOGIN: 'true' }).allowOwnerLogin, true);
    assert.deepEqual(problemsOf({ ...NEEDED, DATABASE_DIRECT_URL: 'db', ALLOW_OWNER_LOGIN: '1' }), [
      'DATABASE_DIRECT_URL: must be a postgres:// URL',
      'ALLOW_OWNER_LOGIN: must be true or false',
    ]);
  });

  it('reads every variable', () => {
    const config = readConfig({
      ...NEEDED,
      ...{
        HOST: '0.0.0.0',
        PUBLIC_URL: 'https://api.example.com',
        PORT: '80',
        CARD_NETWORK: 'simulated',
        CARD_CREATION_WAIT_MS: '250',
      },
      ...{
        ISSUANCE_DEADLINE: '90m',
        TOPUP_DEADLINE: '2h',
        RATE_LIMIT_PER_SECOND: '0',
        RATE_LIMIT_BURST: '5',
        ACCOUNT_CONCURRENCY: '3',
        STORED_MB_PER_DAY: '7',
        TRUSTED_PROXIES: '10.0.0.0/8, 2001:db8::/32',
        LOG_LEVEL: 'warn',
      },
      ...{ WEBHOOK_RETRY_SCHEDULE: '1s, 2m', WEBHOOK_TIMEOUT: '3s', WEBHOOK_ALLOW_LOOPBACK_HTTP: 'true' },
      ...{ TASK_QUEUE_PREFIX: 'eu-', TEMPORAL_NAMESPACE: 'ns', TEMPORAL_API_KEY: 'secret' },
    });
    assert.deepEqual(
      [config.host, config.publicUrl, config.port, config.cardNetwork, config.cardCreationWaitMs],
      ['0.0.0.0', 'https://api.example.com', 80, 'simulated', 250],
    );
    assert.deepEqual(
      [config.rateLimitPerSecond, config.rateLimitBurst, config.accountConcurrency, config.storedBytesPerDay],
      [0, 5, 3, 7_000_000],
    );
    assert.deepEqual(
      config.trustedProxies.map(([address, bits]) => `${address}/${bits}`),
      ['10.0.0.0/8', '2001:db8::/32'],
    );
    assert.deepEqual(
      [config.logLevel, config.taskQueuePrefix, config.issuanceDeadlineMs],
      ['warn', 'eu-', 5_400_000],
    );
    assert.deepEqual(
      [
        config.topUpDeadlineMs,
        config.webhookDelaysMs,
        config.webhookTimeoutMs,
        config.webhookAllowLoopbackHttp,
      ],
      [7_200_000, [1_000, 120_000], 3_000, true],
    );
    const { namespace, connectionOptions } = config.temporal;
    assert.deepEqual([namespace, connectionOptions?.apiKey, connectionOptions?.tls], ['ns', 'secret', true]);
  });

  it("knows the nodes and the contract of a public network, and accepts a bare node's two ports", () => {
    const { xpub } = TEST_TRON;
    const tronOf = (env: Record<string, string>) => {
      const { tron, depositAddressTtlMs } = readConfig({ ...NEEDED, TRON_XPUB: xpub, ...env });
      return { ...tron, depositAddressTtlMs };
    };
    const grid = 'https://api.trongrid.io';
    assert.deepEqual(tronOf({ TRON_NETWORK: 'mainnet' }), {
      ...{ network: 'mainnet', nodes: [{ full: grid, solidity: grid }], apiKey: null, xpub },
      confirmingNodes: 1,
      usdtContract: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
      ...{ scanIntervalMs: 3_000, depositAddressTtlMs: 8 * 3_600_000 },
    });
    const set = {
      ...{ TRON_NETWORK: 'private', TRON_API_KEY: 'key', TRON_USDT_CONTRACT: TEST_TRON.usdtContract },
      ...{
        TRON_NODE_URLS: 'http://a:1|http://a:2 , http://b/c',
        TRON_SCAN_INTERVAL: '1s',
        DEPOSIT_ADDRESS_TTL: '30m',
      },
    };
    assert.deepEqual(tronOf(set), {
      ...{ network: 'private', apiKey: 'key', usdtContract: TEST_TRON.usdtContract, xpub },
      confirmingNodes: 2,
      nodes: [
        { full: 'http://a:1', solidity: 'http://a:2' },
        { full: 'http://b/c', solidity: 'http://b/c' },
      ],
      ...{ scanIntervalMs: 1_000, depositAddressTtlMs: 1_800_000 },
    });
    assert.equal(
      readConfig({ ...NEEDED, ...set, TRON_XPUB: xpub, TRON_CONFIRMING_NODES: '1' }).tron?.confirmingNodes,
      1,
    );
    // Without a network nothing else about deposits has a meaning.
    assert.equal(readConfig({ ...NEEDED, TRON_XPUB: xpub }).tron, null);
  });

  it('needs to know where browsers reach it, unless that is on this machine or nobody does', () => {
    const HOST = '0.0.0.0';
    const required =
      'PUBLIC_URL: is required, since HOST is no loopback address: the origin where browsers reach the API, such as https://api.example.com';
    assert.deepEqual(problemsOf({ ...NEEDED, HOST }, readApiConfig), [required]);
    assert.deepEqual(problemsOf({ ...NEEDED, HOST, API_PARTS: 'reveal' }, readApiConfig), [required]);
    assert.equal(readWorkerConfig({ ...NEEDED, HOST }).host, HOST);
    assert.equal(readApiConfig({ ...NEEDED, HOST, API_PARTS: 'network' }).host, HOST);
    assert.equal(readApiConfig({ ...NEEDED, HOST: '::1' }).publicUrl, 'http://[::1]:3000');
    const wrong = 'PUBLIC_URL: must be an origin such as https://api.example.com; http only on loopback';
    for (const PUBLIC_URL of [
      'http://api.example.com',
      'https://a.example/v1',
      'https://a.example/',
      'a',
      'ftp://a',
    ])
      assert.deepEqual(problemsOf({ ...NEEDED, PUBLIC_URL }, readApiConfig), [wrong], PUBLIC_URL);
  });

  it('reads only the secrets that a process uses, and opens no file of another one', () => {
    const { xpub } = TEST_TRON;
    const files = {
      ...{ CODEC_TOKENS_FILE: '/none', TRON_API_KEY_FILE: '/none', TRON_NODE_URLS_FILE: '/none' },
      // Of nodes that only the worker knows.
      ...{ TRON_NETWORK: 'mainnet', TRON_CONFIRMING_NODES: '2' },
    };
    const api = readApiConfig({ ...NEEDED, ...files, TRON_XPUB: xpub });
    assert.deepEqual([api.tron?.xpub, api.apiParts], [xpub, ['partner', 'workbench', 'reveal', 'network']]);
    const worker = { CODEC_TOKENS_FILE: '/none', TRON_XPUB_FILE: '/none', READ_DATABASE_URL_FILE: '/none' };
    assert.equal(readWorkerConfig({ ...NEEDED, ...worker, TRON_NETWORK: 'nile' }).tron?.xpub, null);
    const { TEMPORAL_ADDRESS: _unused, ...ofReveals } = NEEDED;
    const reveal = readApiConfig({
      ...{ ...ofReveals, ...files, ...worker, API_PARTS: 'reveal' },
      ...{ CODEC_KEYS_FILE: '/none', TEMPORAL_API_KEY_FILE: '/none' },
    });
    assert.deepEqual([reveal.apiParts, reveal.codecKeys], [['reveal'], null]);
    assert.deepEqual(problemsOf({ ...ofReveals, API_PARTS: 'reveal,network' }, readApiConfig), [
      'TEMPORAL_ADDRESS: is required',
    ]);
    assert.deepEqual(problemsOf({ ...NEEDED, API_PARTS: 'reveals' }, readApiConfig), [
      'API_PARTS: must be all, or of partner, workbench, reveal, network, comma-separated',
    ]);
    assert.deepEqual(problemsOf({ ...NEEDED, API_PARTS: 'reveal,reveal' }, readApiConfig), [
      'API_PARTS: must not name a part twice',
    ]);
    assert.deepEqual(problemsOf({ ...NEEDED, TRON_NETWORK: 'mainnet' }, readApiConfig), [
      'TRON_XPUB: is required with TRON_NETWORK',
    ]);
  });

  it('treats an empty value as unset', () => {
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

  it('accepts another host or port, or both, for readiness and metrics', () => {
    const operationsOf = (env: Record<string, string>) => readConfig({ ...NEEDED, ...env }).operations;
    assert.deepEqual(
      operationsOf({ HOST: '0.0.0.0', PUBLIC_URL: 'https://api.example.com', OPERATIONS_PORT: '9090' }),
      {
        host: '0.0.0.0',
        port: 9090,
      },
    );
    assert.deepEqual(operationsOf({ OPERATIONS_HOST: '10.0.0.1' }), { host: '10.0.0.1', port: 3000 });
    assert.equal(operationsOf({ OPERATIONS_HOST: '127.0.0.1', OPERATIONS_PORT: '3000' }), null);
  });

  it("makes a worker listen on the API's host unless told otherwise, and on any free port on request", () => {
    const workerOf = (env: Record<string, string>) => {
      const { host, port } = readConfig({ ...NEEDED, ...env }).worker;
      return { host, port };
    };
    assert.deepEqual(workerOf({ HOST: '0.0.0.0', PUBLIC_URL: 'https://api.example.com' }), {
      host: '0.0.0.0',
      port: 3001,
    });
    assert.deepEqual(workerOf({ WORKER_HOST: '10.0.0.1', WORKER_PORT: '0' }), { host: '10.0.0.1', port: 0 });
    assert.deepEqual(problemsOf({ ...NEEDED, WORKER_PORT: '70000' }), [
      'WORKER_PORT: must be a whole number from 0 to 65535',
    ]);
  });

  it('has a worker serve the task queues that WORKER_QUEUES names, all three unless it names some', () => {
    const queuesOf = (names: string) => readConfig({ ...NEEDED, WORKER_QUEUES: names }).worker.queues;
    assert.deepEqual(queuesOf(''), ['cards', 'webhooks', 'deposits']);
    assert.deepEqual(queuesOf('webhooks, cards'), ['webhooks', 'cards']);
    assert.deepEqual(problemsOf({ ...NEEDED, WORKER_QUEUES: 'cards,mail' }), [
      'WORKER_QUEUES: must be of cards, webhooks, deposits, comma-separated',
    ]);
    assert.deepEqual(problemsOf({ ...NEEDED, WORKER_QUEUES: 'cards,cards' }), [
      'WORKER_QUEUES: must not name a queue twice',
    ]);
    assert.match(
      problemsOf({ ...NEEDED, WORKER_QUEUE: 'cards' })[0] ?? '',
      /^WORKER_QUEUE: is not a known variable; did you mean WORKER_QUEUES\?/,
    );
  });

  it('accepts several keys in order, each of 32 bytes and with its own id', () => {
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
      /must not contain a key id twice/,
    );
  });
});

describe('readMigrationConfig', () => {
  const DATABASE = { DATABASE_URL: NEEDED.DATABASE_URL };

  it('needs only the database', () => {
    assert.deepEqual(readMigrationConfig(DATABASE), {
      databaseUrl: DATABASE.DATABASE_URL,
      firstProduct: null,
      adjustmentApprovalCents: null,
      temporal: null,
    });
    assert.deepEqual(problemsOf({}, readMigrationConfig), ['DATABASE_URL: is required']);
  });

  it('reads how to reach Temporal, if that is given', () => {
    const { temporal } = readMigrationConfig({
      ...{
        ...DATABASE,
        TEMPORAL_ADDRESS: 'temporal:7233',
        TEMPORAL_TLS: 'true',
        TEMPORAL_NAMESPACE: 'cards',
      },
    });
    assert.equal(temporal?.connectionOptions?.address, 'temporal:7233');
    assert.equal(temporal?.namespace, 'cards');
  });

  it('accepts a first product only with all three variables', () => {
    const product = { PRODUCT_CODE: 'USD', PRODUCT_BIN: '424242', PRODUCT_NETWORK: 'visa' };
    assert.deepEqual(readMigrationConfig({ ...DATABASE, ...product }).firstProduct, {
      ...{ code: 'USD', bin: '424242', scheme: 'visa' },
    });
    for (const missing of Object.keys(product)) {
      assert.deepEqual(problemsOf({ ...DATABASE, ...product, [missing]: '' }, readMigrationConfig), [
        'PRODUCT_CODE, PRODUCT_BIN, PRODUCT_NETWORK: set all three or none',
      ]);
    }
  });
});
