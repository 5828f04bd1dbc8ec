import { randomBytes, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Client, Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { Logger } from 'pino';
import { createApiKey } from '../../accounts/api-keys.ts';
import { createPartner } from '../../accounts/partners.ts';
import { type HostWorker, type RunningApi, startApi } from '../../api/server.ts';
import { setCurrentProduct } from '../../cards/products.ts';
import { freePort } from '../../dev/free-port.ts';
import type { Mode } from '../../domain/mode.ts';
import { API_PARTS } from '../../platform/config/api-parts.ts';
import type { Config } from '../../platform/config/service.ts';
import { cardsTaskQueue, WORKER_QUEUES } from '../../platform/config/task-queues.ts';
import { KeyRing } from '../../platform/crypto/key-ring.ts';
import { type Orm, openOrm } from '../../platform/db/orm.ts';
import { OPERATOR_LIMITS } from '../../platform/db/session.ts';
import { createLogger } from '../../platform/process/logger.ts';
import { ignoreRetriesAfterClose } from '../../platform/temporal/connection.ts';
import { startEagerWorker } from '../../platform/temporal/eager-worker.ts';
import { TemporalPlugin } from '../../platform/temporal/plugin.ts';
import type { OperatorContext } from '../../requests/operator-context.ts';
import { type RunningWorker, startWorker, type WorkerOptions } from '../../worker/start-worker.ts';
import { createTestDatabase, openOperatorOrm } from './postgres.ts';
import { testServers } from './servers.ts';

export const TEST_PRODUCT = { code: 'TEST-USD', bin: '424242', scheme: 'visa' };

/** The service as a partner meets it: API and worker on a database and task queues of their own. */
export interface TestStack extends AsyncDisposable {
  /** Its databaseUrl is the service's; `ownerUrlOf` makes the owner's of it. */
  config: Config;
  orm: Orm;
  operator: OperatorContext;
  client: Client;
  startWorker(options?: WorkerOptions): Promise<RunningWorker>;
  stopWorker(): Promise<void>;
  workerUrl(): string;
  /** Every line that API and worker logged so far. */
  logLines: string[];
  startedAt: Date;
  createPartner(name?: string): Promise<TestPartner>;
  /** The same partner, who calls this stack's API. */
  partnerHere(partner: TestPartner): TestPartner;
  stop(): Promise<void>;
}

export interface TestPartner {
  id: string;
  keys: Record<Mode, string>;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
}

export interface CallOptions {
  mode?: Mode;
  body?: unknown;
  idempotencyKey?: string;
  headers?: Record<string, string>;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the contract promises.
  json: any;
}

let bundle: Promise<WorkflowBundleWithSourceMap> | undefined;

/** The workflows, bundled once for all workers of a run. */
export function testWorkflowBundle(): Promise<WorkflowBundleWithSourceMap> {
  bundle ??= readFile(testServers().bundleFile, 'utf8').then(JSON.parse);
  return bundle;
}

export async function testConfig(overrides: Partial<Config> = {}): Promise<Config> {
  const { address, namespace } = testServers().temporal;
  const port = overrides.port ?? (await freePort());
  return {
    host: '127.0.0.1',
    port,
    publicUrl: `http://127.0.0.1:${port}`,
    apiParts: API_PARTS,
    operations: null,
    worker: { host: '127.0.0.1', port: 0, queues: WORKER_QUEUES },
    databaseUrl: overrides.databaseUrl ?? (await createTestDatabase()),
    databaseDirectUrl: null,
    readDatabaseUrl: null,
    allowOwnerLogin: false,
    temporal: { connectionOptions: { address }, namespace },
    taskQueuePrefix: `test-${randomUUID().slice(0, 8)}-`,
    drainDelayMs: 0,
    workerVersion: null,
    encryptionKeys: [{ id: 'k1', secret: randomBytes(32) }],
    // So that a test that searches histories for what must not be there sees what is there.
    codecKeys: null,
    cardNetwork: 'simulated',
    increase: null,
    lithic: null,
    networkKeyLifetimeMs: 20 * 3_600_000,
    // Longer than in production: a machine that does much else at the time changes no answer.
    cardCreationWaitMs: 30_000,
    issuanceDeadlineMs: 24 * 3_600_000,
    authorizationTtlMs: 168 * 3_600_000,
    topUpDeadlineMs: 24 * 3_600_000,
    withdrawalDeadlineMs: 24 * 3_600_000,
    webhookDelaysMs: [30_000, 300_000, 1_800_000, 7_200_000],
    webhookTimeoutMs: 10_000,
    webhookAllowLoopbackHttp: true,
    rateLimitPerSecond: 0,
    rateLimitBurst: 0,
    accountConcurrency: 16,
    storedBytesPerDay: 0,
    reportLimits: { stallMs: 60_000, maxMs: 3_600_000 },
    responseLimits: { stallMs: 10_000, maxMs: 60_000, maxUnsentBytes: 4 * 1_048_576 },
    trustedProxies: [],
    depositAddressTtlMs: 8 * 3_600_000,
    tron: null,
    tracing: null,
    ledgerCheckAt: { hour: 3, minute: 0 },
    checkResponses: true,
    logLevel: 'info',
    ...overrides,
  };
}

/** As production's API processes do. */
export const hostTestWorker =
  (config: Config, logger: Logger): HostWorker =>
  async (activities, tracing) => {
    const taskQueue = cardsTaskQueue(config.taskQueuePrefix);
    const workflowBundle = await testWorkflowBundle();
    return startEagerWorker({ config, taskQueue, activities, workflowBundle, logger, tracing });
  };

/**
 * @param options.worker whether a worker runs from the start
 * @param options.hosted whether the API hosts one as well; as `worker` unless given
 */
export async function startTestStack(
  overrides: Partial<Config> = {},
  options: { worker?: boolean; hosted?: boolean; product?: boolean } = {},
): Promise<TestStack> {
  const config = await testConfig(overrides);
  const startedAt = new Date();
  const logLines: string[] = [];
  const logger = createLogger('api', config.logLevel, { write: (line: string) => logLines.push(line) });
  const direct = config.databaseDirectUrl ?? config.databaseUrl;
  // As many as a test may ask for at once, so that no statement of its own waits for another.
  const orm = await openOrm({ databaseUrl: direct, poolSize: 40, limits: OPERATOR_LIMITS });
  const operatorOrm = await openOperatorOrm(direct);
  const operator = { orm: operatorOrm, ring: new KeyRing(config.encryptionKeys), actor: 'test' };
  if (options.product ?? true) await setCurrentProduct(operator, TEST_PRODUCT);
  const connection = await Connection.connect({
    ...config.temporal.connectionOptions,
    plugins: [new TemporalPlugin({ codecKeys: config.codecKeys, logger })],
    // A test may end before the result of a workflow that it waits for.
    interceptors: [makeGrpcRetryInterceptor(defaultGrpcRetryOptions()), ignoreRetriesAfterClose],
  });
  const hostWorker = (options.hosted ?? options.worker ?? true) ? hostTestWorker(config, logger) : undefined;
  const api: RunningApi = await startApi(config, logger, { hostWorker });
  let worker: RunningWorker | undefined;

  const stack: TestStack = {
    config,
    orm,
    operator,
    client: new Client({ connection, namespace: config.temporal.namespace ?? 'default' }),
    logLines,
    startedAt,
    startWorker: async (workerOptions = {}) => {
      worker = await startWorker(config, logger, {
        workflowBundle: await testWorkflowBundle(),
        ...workerOptions,
      });
      return worker;
    },
    stopWorker: async () => {
      await worker?.stop();
      worker = undefined;
    },
    workerUrl: () => worker?.operationsUrl ?? '',
    createPartner: (name = 'Test Partner') => createTestPartner(operator, api.url, name),
    partnerHere: (partner) => partnerAt(partner, api.url),
    stop: async () => {
      await api.stop();
      await worker?.stop();
      await connection.close();
      await orm.close();
      await operatorOrm.close();
    },
    [Symbol.asyncDispose]: () => stack.stop(),
  };
  if (options.worker ?? true) await stack.startWorker();
  return stack;
}

async function createTestPartner(
  operator: OperatorContext,
  apiUrl: string,
  name: string,
): Promise<TestPartner> {
  const { id } = await createPartner(operator, { name, secureDetailsEnabled: false });
  const [test, live] = await Promise.all(
    (['test', 'live'] as const).map((mode) => createApiKey(operator, { partnerId: id, mode, name: null })),
  );
  const keys = { test: test?.key ?? '', live: live?.key ?? '' };
  return { id, keys, call: (method, path, options) => call(apiUrl, keys, method, path, options ?? {}) };
}

/** The partner, as it calls another API process. */
export const partnerAt = (partner: TestPartner, apiUrl: string): TestPartner => ({
  ...partner,
  call: (method, path, options) => call(apiUrl, partner.keys, method, path, options ?? {}),
});

async function call(
  apiUrl: string,
  keys: Record<Mode, string>,
  method: string,
  path: string,
  { mode = 'test', body, idempotencyKey, headers = {} }: CallOptions,
): Promise<Answer> {
  const response = await fetch(`${apiUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${keys[mode]}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: isJson ? JSON.parse(text) : undefined,
  };
}
