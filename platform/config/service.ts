import { type ClientConnectConfig, loadClientConnectConfig } from '@temporalio/envconfig';
import type { z } from 'zod';
import type { TracingConfig } from '../process/tracing.ts';
import { type ApiPart, ApiParts } from './api-parts.ts';
import { increaseConfig, lithicConfig, networkProblems, SIGNATURE_SECRETS } from './card-networks.ts';
import { Environment } from './environment.ts';
import { parseEnvironment } from './read-environment.ts';
import { tronConfig, tronProblems } from './tron.ts';
import { isLoopback } from './values.ts';

/** What an API process or a worker is told by its environment. */
export type Config = ReturnType<typeof toConfig>;

/** A worker derives no deposit addresses, reads no lists, and takes no requests of the card network. */
export const WorkerEnvironment = Environment.omit({
  ...SIGNATURE_SECRETS,
  CODEC_TOKENS: true,
  READ_DATABASE_URL: true,
  TRON_XPUB: true,
  PUBLIC_URL: true,
});
/** The API reads no chain. */
const PartnerEnvironment = Environment.omit({ CODEC_TOKENS: true, TRON_NODE_URLS: true, TRON_API_KEY: true });
const NetworkEnvironment = PartnerEnvironment.omit({ READ_DATABASE_URL: true, TRON_XPUB: true });
/** A process that only reveals card details starts no workflows. */
const RevealEnvironment = NetworkEnvironment.omit({
  ...SIGNATURE_SECRETS,
  CODEC_KEYS: true,
  TEMPORAL_API_KEY: true,
}).extend({
  TEMPORAL_ADDRESS: Environment.shape.TEMPORAL_ADDRESS.default(''),
});

/** The variables that an API process reads. One that serves fewer parts reads fewer secrets. */
export function apiEnvironment(env: NodeJS.ProcessEnv) {
  // Problems of API_PARTS itself are found when the environment is parsed.
  const parts = ApiParts.safeParse(env.API_PARTS || undefined).data ?? ['partner'];
  const serves = (part: ApiPart) => parts.includes(part);
  if (!serves('network'))
    return serves('partner') ? PartnerEnvironment.omit(SIGNATURE_SECRETS) : RevealEnvironment;
  if (serves('partner')) return PartnerEnvironment;
  // Lithic's posts contain all that a decision needs. Increase's name only what to ask for.
  if (serves('reveal')) return NetworkEnvironment;
  const withoutReveals = NetworkEnvironment.omit({ LITHIC_API_KEY: true });
  return serves('workbench') ? withoutReveals : withoutReveals.omit({ PUBLIC_URL: true });
}

/** The configuration of an API process. @throws ConfigurationError */
export function readApiConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const schema = apiEnvironment(env);
  const { set, values } = parseEnvironment(schema, env, (given) => serviceProblems(given, schema.shape));
  return toConfig(set, values);
}

/** The configuration of a worker. @throws ConfigurationError */
export function readWorkerConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const { set, values } = parseEnvironment(WorkerEnvironment, env, (given) =>
    serviceProblems(given, WorkerEnvironment.shape),
  );
  return toConfig(set, values);
}

/** The configuration of API and worker together, as the local stack checks it. @throws ConfigurationError */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const { set, values } = parseEnvironment(Environment, env, (given) => serviceProblems(given));
  return toConfig(set, values);
}

function toConfig(set: NodeJS.ProcessEnv, values: z.infer<typeof Environment>) {
  return {
    host: values.HOST,
    port: values.PORT,
    /** What an API process serves. */
    apiParts: values.API_PARTS,
    /** The origin where browsers reach the API. */
    publicUrl: values.PUBLIC_URL ?? `http://${values.HOST === '::1' ? '[::1]' : values.HOST}:${values.PORT}`,
    operations: operationsAddress(values),
    /**
     * How long an API process keeps serving after it is told to stop, until load balancers notice that it is
     * not ready.
     */
    drainDelayMs: values.DRAIN_DELAY,
    /** Where a worker listens, for operators (port 0 is any free one), and the task queues that it serves. */
    worker: {
      host: values.WORKER_HOST ?? values.HOST,
      port: values.WORKER_PORT,
      queues: values.WORKER_QUEUES,
    },
    databaseUrl: values.DATABASE_URL,
    /** PostgreSQL itself, if databaseUrl is a connection pooler; otherwise null. */
    databaseDirectUrl:
      values.DATABASE_DIRECT_URL === values.DATABASE_URL ? null : (values.DATABASE_DIRECT_URL ?? null),
    /** A standby that lists are read from; null if there is none. */
    readDatabaseUrl: values.READ_DATABASE_URL ?? null,
    /** Whether a login that owns the schema, or could, gets a warning instead of a refusal. */
    allowOwnerLogin: values.ALLOW_OWNER_LOGIN === 'true',
    temporal: temporalConfig(set),
    taskQueuePrefix: values.TASK_QUEUE_PREFIX ?? '',
    /** A ready-made bundle of the workflows. Without it, each process bundles them as it starts. */
    ...(values.WORKFLOW_BUNDLE && { workflowBundle: { codePath: values.WORKFLOW_BUNDLE } }),
    workerVersion: workerVersion(values),
    encryptionKeys: values.ENCRYPTION_KEYS,
    /** The first one encrypts what is sent to Temporal; null if nothing is encrypted. */
    codecKeys: values.CODEC_KEYS ?? null,
    cardNetwork: values.CARD_NETWORK,
    /** Null unless cardNetwork is increase. */
    increase: increaseConfig(values),
    /** Null unless cardNetwork is lithic. */
    lithic: lithicConfig(values),
    /** How old an operation may be for its idempotency key to be sent to the network again. */
    networkKeyLifetimeMs: values.NETWORK_KEY_LIFETIME,
    cardCreationWaitMs: values.CARD_CREATION_WAIT_MS,
    issuanceDeadlineMs: values.ISSUANCE_DEADLINE,
    topUpDeadlineMs: values.TOPUP_DEADLINE,
    withdrawalDeadlineMs: values.WITHDRAWAL_DEADLINE,
    /** How long an authorization holds its amount at most. */
    authorizationTtlMs: values.AUTHORIZATION_TTL,
    /** The delay after each failed attempt. */
    webhookDelaysMs: values.WEBHOOK_RETRY_SCHEDULE,
    webhookTimeoutMs: values.WEBHOOK_TIMEOUT,
    webhookAllowLoopbackHttp: values.WEBHOOK_ALLOW_LOOPBACK_HTTP === 'true',
    rateLimitPerSecond: values.RATE_LIMIT_PER_SECOND,
    rateLimitBurst: values.RATE_LIMIT_BURST,
    /** How many requests of one account and mode an API process handles at once. */
    accountConcurrency: values.ACCOUNT_CONCURRENCY,
    /** How much the requests of one account and mode can have stored; 0: any amount. */
    storedBytesPerDay: values.STORED_MB_PER_DAY * 1_000_000,
    /** How long a client may take for a part of a report, and for all of it. */
    reportLimits: { stallMs: 60_000, maxMs: 3_600_000 },
    /**
     * How long a client may take nothing of another response, and for all of it, and how much an account may
     * leave unread.
     */
    responseLimits: { stallMs: 10_000, maxMs: 60_000, maxUnsentBytes: 4 * 1_048_576 },
    /** The proxies whose X-Forwarded-For is believed, each as an address and the length of its prefix. */
    trustedProxies: values.TRUSTED_PROXIES,
    depositAddressTtlMs: values.DEPOSIT_ADDRESS_TTL,
    /** Null if there are no deposits. */
    tron: tronConfig(values),
    tracing: tracingConfig(values),
    /** When the whole ledger is checked, every day. */
    ledgerCheckAt: values.LEDGER_CHECK_AT,
    /** For tests: whether the API checks each of its responses against its declaration. */
    checkResponses: values.CHECK_ANSWERS === 'true',
    logLevel: values.LOG_LEVEL,
  };
}

/** Where traces go; null if there are none. */
function tracingConfig(values: z.infer<typeof Environment>): TracingConfig | null {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own } = values;
  const url = own ?? (endpoint && `${endpoint.replace(/\/$/, '')}/v1/traces`);
  if (url === undefined || values.OTEL_SDK_DISABLED === 'true') return null;
  return { url, headers: values.OTEL_EXPORTER_OTLP_HEADERS, ratio: values.OTEL_TRACES_SAMPLER_ARG };
}

/** Where readiness and metrics listen; null if they share the API's address. */
function operationsAddress(values: z.infer<typeof Environment>) {
  const { HOST, PORT, OPERATIONS_HOST: host = HOST, OPERATIONS_PORT: port = PORT } = values;
  return host === HOST && port === PORT ? null : { host, port };
}

/** This process's version in Temporal's worker versioning; null if workers are not versioned. */
function workerVersion(values: z.infer<typeof Environment>) {
  const { TEMPORAL_DEPLOYMENT_NAME: deploymentName, TEMPORAL_WORKER_BUILD_ID: buildId } = values;
  return deploymentName && buildId ? { deploymentName, buildId } : null;
}

/** Problems of several variables together, and of the files they name. */
export function serviceProblems(set: NodeJS.ProcessEnv, schema: object = Environment.shape): string[] {
  return [
    ...publicUrlProblems(set, schema),
    ...tronProblems(set, schema),
    ...temporalProblems(set),
    ...networkProblems(set, schema),
    ...versionProblems(set),
    ...productProblems(set),
  ];
}

function publicUrlProblems(set: NodeJS.ProcessEnv, schema: object): string[] {
  if (!('PUBLIC_URL' in schema) || set.PUBLIC_URL || isLoopback(set.HOST ?? '127.0.0.1')) return [];
  return [
    'PUBLIC_URL: is required, since HOST is no loopback address: the origin where browsers reach the API, such as https://api.example.com',
  ];
}

function temporalProblems(set: NodeJS.ProcessEnv): string[] {
  try {
    if (set.TEMPORAL_ADDRESS) temporalConfig(set);
    return [];
  } catch (error) {
    // Only the first line, because the others may quote the file, and so a key.
    const [problem] = String(error).split('\n');
    return [`TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE, TEMPORAL_TLS_…: ${problem}`];
  }
}

function versionProblems(set: NodeJS.ProcessEnv): string[] {
  return Boolean(set.TEMPORAL_DEPLOYMENT_NAME) === Boolean(set.TEMPORAL_WORKER_BUILD_ID)
    ? []
    : ['TEMPORAL_DEPLOYMENT_NAME, TEMPORAL_WORKER_BUILD_ID: set both or neither'];
}

/** What the Temporal SDK reads from the environment and from the files that it names. */
function temporalConfig(set: NodeJS.ProcessEnv): ClientConnectConfig {
  return loadClientConnectConfig({ overrideEnvVars: set as Record<string, string> });
}

export type MigrationConfig = ReturnType<typeof readMigrationConfig>;

export const MigrationEnvironment = Environment.pick({
  DATABASE_URL: true,
  ALLOW_PLAINTEXT_POSTGRES: true,
  ALLOW_PLAINTEXT_TEMPORAL: true,
  PRODUCT_CODE: true,
  PRODUCT_BIN: true,
  PRODUCT_NETWORK: true,
  TEMPORAL_ADDRESS: true,
  TEMPORAL_NAMESPACE: true,
  ADJUSTMENT_APPROVAL_CENTS: true,
  TEMPORAL_API_KEY: true,
}).partial({ TEMPORAL_ADDRESS: true });

/** What `npm run migrate` needs. @throws ConfigurationError */
export function readMigrationConfig(env: NodeJS.ProcessEnv = process.env) {
  const { set, values } = parseEnvironment(MigrationEnvironment, env, (given) => [
    ...temporalProblems(given),
    ...productProblems(given),
  ]);
  const { PRODUCT_CODE: code, PRODUCT_BIN: bin, PRODUCT_NETWORK: scheme } = values;
  return {
    databaseUrl: values.DATABASE_URL,
    /** The database books no larger adjustment without an approval from then on; null: leave it as it is. */
    adjustmentApprovalCents: values.ADJUSTMENT_APPROVAL_CENTS ?? null,
    firstProduct: code && bin && scheme ? { code, bin, scheme } : null,
    /** Null if it is not configured. Nothing is registered there then. */
    temporal: values.TEMPORAL_ADDRESS === undefined ? null : temporalConfig(set),
  };
}

function productProblems(set: NodeJS.ProcessEnv): string[] {
  const missing = [set.PRODUCT_CODE, set.PRODUCT_BIN, set.PRODUCT_NETWORK].filter((value) => !value).length;
  return missing === 0 || missing === 3
    ? []
    : ['PRODUCT_CODE, PRODUCT_BIN, PRODUCT_NETWORK: set all three or none'];
}
