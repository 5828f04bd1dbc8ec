import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Config,
  readApiConfig,
  readConfig,
  readMigrationConfig,
  readWorkerConfig,
} from '../../../platform/config/service.ts';
import { column } from '../../support/column.ts';
import { problemsOf } from '../../support/config-problems.ts';
import { TEST_TRON } from '../../support/deposits/seed-deposits.ts';

const SECRET = Buffer.alloc(32, 7);
const KEY = `k1:${SECRET.toString('base64')}`;
/** A host that is no loopback address, and what it then needs. */
const ANYWHERE = { HOST: '0.0.0.0', PUBLIC_URL: 'https://api.example.com' };
const NEEDED = {
  DATABASE_URL: 'postgres://user:pass@127.0.0.1:5432/cards',
  TEMPORAL_ADDRESS: '127.0.0.1:7233',
  ENCRYPTION_KEYS: KEY,
};

const readWith = (env: Record<string, string>) => readConfig({ ...NEEDED, ...env });
const problemsWith = (env: Record<string, string>, read: (env: NodeJS.ProcessEnv) => unknown = readConfig) =>
  problemsOf({ ...NEEDED, ...env }, read);

describe('readConfig', () => {
  it('reads a worker version from two variables, which belong together', () => {
    const version = { TEMPORAL_DEPLOYMENT_NAME: 'production/cards', TEMPORAL_WORKER_BUILD_ID: 'v1.4.2' };
    const { workerVersion } = readWith(version);
    assert.deepEqual(workerVersion, { deploymentName: 'production/cards', buildId: 'v1.4.2' });
    assert.deepEqual(problemsWith({ ...version, TEMPORAL_WORKER_BUILD_ID: '' }), [
      'TEMPORAL_DEPLOYMENT_NAME, TEMPORAL_WORKER_BUILD_ID: set both or neither',
    ]);
  });

  it('reads a secret from the file that a variable names', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'config-')), 'keys');
    writeFileSync(file, `${KEY}\n`);
    const { ENCRYPTION_KEYS: _, ...others } = NEEDED;
    const { encryptionKeys } = readConfig({ ...others, ENCRYPTION_KEYS_FILE: file });
    assert.deepEqual(encryptionKeys, [{ id: 'k1', secret: SECRET }]);
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
    for (const [url, expected] of [
      [direct, direct],
      [NEEDED.DATABASE_URL, null],
      ['', null],
    ] as const)
      assert.equal(readWith({ DATABASE_DIRECT_URL: url }).databaseDirectUrl, expected);
    assert.deepEqual(problemsWith({ DATABASE_DIRECT_URL: 'db', ALLOW_OWNER_LOGIN: '1' }), [
      'DATABASE_DIRECT_URL: must be a postgres:// URL',
      'ALLOW_OWNER_LOGIN: must be true or false',
    ]);
  });

  it('reads every variable', () => {
    const VARIABLES: [name: string, text: string, field: keyof Config, value: unknown][] = [
      ['HOST', '0.0.0.0', 'host', '0.0.0.0'],
      ['PUBLIC_URL', 'https://api.example.com', 'publicUrl', 'https://api.example.com'],
      ['PORT', '80', 'port', 80],
      ['CARD_NETWORK', 'simulated', 'cardNetwork', 'simulated'],
      ['CARD_CREATION_WAIT_MS', '250', 'cardCreationWaitMs', 250],
      ['ISSUANCE_DEADLINE', '90m', 'issuanceDeadlineMs', 5_400_000],
      ['TOPUP_DEADLINE', '2h', 'topUpDeadlineMs', 7_200_000],
      ['RATE_LIMIT_PER_SECOND', '0', 'rateLimitPerSecond', 0],
      ['RATE_LIMIT_BURST', '5', 'rateLimitBurst', 5],
      ['ACCOUNT_CONCURRENCY', '3', 'accountConcurrency', 3],
      ['STORED_MB_PER_DAY', '7', 'storedBytesPerDay', 7_000_000],
      ['LOG_LEVEL', 'warn', 'logLevel', 'warn'],
      ['WEBHOOK_RETRY_SCHEDULE', '1s, 2m', 'webhookDelaysMs', [1_000, 120_000]],
      ['WEBHOOK_TIMEOUT', '3s', 'webhookTimeoutMs', 3_000],
      ['WEBHOOK_ALLOW_LOOPBACK_HTTP', 'true', 'webhookAllowLoopbackHttp', true],
      ['TASK_QUEUE_PREFIX', 'eu-', 'taskQueuePrefix', 'eu-'],
      ['ALLOW_OWNER_LOGIN', 'true', 'allowOwnerLogin', true],
      ['WORKFLOW_BUNDLE', '/app/bundle.js', 'workflowBundle', { codePath: '/app/bundle.js' }],
    ];
    const config = readWith({
      ...Object.fromEntries(VARIABLES),
      TRUSTED_PROXIES: '10.0.0.0/8, 2001:db8::/32',
      TEMPORAL_NAMESPACE: 'ns',
      TEMPORAL_API_KEY: 'secret',
    });
    for (const [name, , field, value] of VARIABLES) assert.deepEqual(config[field], value, name);
    const proxies = config.trustedProxies.map(([address, bits]) => `${address}/${bits}`);
    assert.deepEqual(proxies, ['10.0.0.0/8', '2001:db8::/32']);
    const { namespace, connectionOptions } = config.temporal;
    assert.deepEqual([namespace, connectionOptions?.apiKey, connectionOptions?.tls], ['ns', 'secret', true]);
  });

  it("knows the nodes and the contract of a public network, and accepts a bare node's two ports", () => {
    const { xpub } = TEST_TRON;
    const tronOf = (env: Record<string, string>) => {
      const { tron, depositAddressTtlMs } = readWith({ TRON_XPUB: xpub, ...env });
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
      TRON_NETWORK: 'private',
      TRON_API_KEY: 'key',
      TRON_USDT_CONTRACT: TEST_TRON.usdtContract,
      TRON_NODE_URLS: 'http://a:1|http://a:2 , http://b/c',
      TRON_SCAN_INTERVAL: '1s',
      DEPOSIT_ADDRESS_TTL: '30m',
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
    assert.equal(tronOf({ ...set, TRON_CONFIRMING_NODES: '1' }).confirmingNodes, 1);
    // Without a network nothing else about deposits has a meaning.
    assert.equal(readWith({ TRON_XPUB: xpub }).tron, null);
  });

  it('needs to know where browsers reach it, unless that is on this machine or nobody does', () => {
    const HOST = '0.0.0.0';
    const required =
      'PUBLIC_URL: is required, since HOST is no loopback address: the origin where browsers reach the API, such as https://api.example.com';
    assert.deepEqual(problemsWith({ HOST }, readApiConfig), [required]);
    assert.deepEqual(problemsWith({ HOST, API_PARTS: 'reveal' }, readApiConfig), [required]);
    assert.equal(readWorkerConfig({ ...NEEDED, HOST }).host, HOST);
    assert.equal(readApiConfig({ ...NEEDED, HOST, API_PARTS: 'network' }).host, HOST);
    assert.equal(readApiConfig({ ...NEEDED, HOST: '::1' }).publicUrl, 'http://[::1]:3000');
    const wrong = 'PUBLIC_URL: must be an origin such as https://api.example.com; http only on loopback';
    for (const url of [
      'http://api.example.com',
      'https://a.example/v1',
      'https://a.example/',
      'a',
      'ftp://a',
    ])
      assert.deepEqual(problemsWith({ PUBLIC_URL: url }, readApiConfig), [wrong], url);
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
    const parts = 'must be all, or of partner, workbench, reveal, network, comma-separated';
    assert.deepEqual(problemsWith({ API_PARTS: 'reveals' }, readApiConfig), [`API_PARTS: ${parts}`]);
    const twice = 'API_PARTS: must not name a part twice';
    assert.deepEqual(problemsWith({ API_PARTS: 'reveal,reveal' }, readApiConfig), [twice]);
    const xpubMissing = 'TRON_XPUB: is required with TRON_NETWORK';
    assert.deepEqual(problemsWith({ TRON_NETWORK: 'mainnet' }, readApiConfig), [xpubMissing]);
  });

  it('treats an empty value as unset', () => {
    const config = readWith({ PORT: '', HOST: '', LOG_LEVEL: '', CARD_NETWORK: '', CARD_NETWROK: '' });
    assert.deepEqual([config.port, config.host, config.logLevel], [3000, '127.0.0.1', 'info']);
    assert.deepEqual(problemsWith({ DATABASE_URL: '' }), ['DATABASE_URL: is required']);
  });

  it('accepts another host or port, or both, for readiness and metrics', () => {
    for (const [env, expected] of [
      [
        { ...ANYWHERE, OPERATIONS_PORT: '9090' },
        { host: '0.0.0.0', port: 9090 },
      ],
      [{ OPERATIONS_HOST: '10.0.0.1' }, { host: '10.0.0.1', port: 3000 }],
      [{ OPERATIONS_HOST: '127.0.0.1', OPERATIONS_PORT: '3000' }, null],
    ] as const)
      assert.deepEqual(readWith(env).operations, expected);
  });

  it("makes a worker listen on the API's host unless told otherwise, and on any free port on request", () => {
    for (const [env, expected] of [
      [ANYWHERE, ['0.0.0.0', 3001]],
      [{ WORKER_HOST: '10.0.0.1', WORKER_PORT: '0' }, ['10.0.0.1', 0]],
    ] as const) {
      const { host, port } = readWith(env).worker;
      assert.deepEqual([host, port], expected);
    }
    const range = 'WORKER_PORT: must be a whole number from 0 to 65535';
    assert.deepEqual(problemsWith({ WORKER_PORT: '70000' }), [range]);
  });

  it('has a worker serve the task queues that WORKER_QUEUES names, all three unless it names some', () => {
    const queuesOf = (names: string) => readWith({ WORKER_QUEUES: names }).worker.queues;
    assert.deepEqual(queuesOf(''), ['cards', 'webhooks', 'deposits']);
    assert.deepEqual(queuesOf('webhooks, cards'), ['webhooks', 'cards']);
    const which = 'WORKER_QUEUES: must be of cards, webhooks, deposits, comma-separated';
    assert.deepEqual(problemsWith({ WORKER_QUEUES: 'cards,mail' }), [which]);
    const twice = 'WORKER_QUEUES: must not name a queue twice';
    assert.deepEqual(problemsWith({ WORKER_QUEUES: 'cards,cards' }), [twice]);
  });

  it('accepts several keys in order, each of 32 bytes and with its own id', () => {
    const other = `new:${Buffer.alloc(32, 8).toString('base64')}`;
    const { encryptionKeys } = readWith({ ENCRYPTION_KEYS: `${other}, ${KEY}` });
    assert.deepEqual(column(encryptionKeys, 'id'), ['new', 'k1']);
    const short = `k1:${Buffer.alloc(31).toString('base64')}`;
    for (const invalid of ['k1', 'k1:', 'k1:AAAA', short, `${KEY},`, `:${KEY}`])
      assert.match(problemsWith({ ENCRYPTION_KEYS: invalid }).join(), /must be id:base64\(32 bytes\)/);
    assert.match(
      problemsWith({ ENCRYPTION_KEYS: `${KEY},${KEY}` }).join(),
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
    const server = { TEMPORAL_ADDRESS: 'temporal:7233', TEMPORAL_TLS: 'true', TEMPORAL_NAMESPACE: 'cards' };
    const { temporal } = readMigrationConfig({ ...DATABASE, ...server });
    assert.deepEqual([temporal?.connectionOptions?.address, temporal?.namespace], ['temporal:7233', 'cards']);
  });

  it('accepts a first product only with all three variables', () => {
    const product = { PRODUCT_CODE: 'USD', PRODUCT_BIN: '424242', PRODUCT_NETWORK: 'visa' };
    assert.deepEqual(readMigrationConfig({ ...DATABASE, ...product }).firstProduct, {
      ...{ code: 'USD', bin: '424242', scheme: 'visa' },
    });
    const all = 'PRODUCT_CODE, PRODUCT_BIN, PRODUCT_NETWORK: set all three or none';
    for (const missing of Object.keys(product))
      assert.deepEqual(problemsOf({ ...DATABASE, ...product, [missing]: '' }, readMigrationConfig), [all]);
  });
});
