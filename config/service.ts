import { readFileSync } from 'node:fs';
import { type ClientConnectConfig, loadClientConnectConfig } from '@temporalio/envconfig';
import type { z } from 'zod';
import type { RingKey } from '../crypto/key-ring.ts';
import { StartRefused } from '../process/run-process.ts';
import { Environment, IN_FILES, KNOWN, OUR_PREFIX } from './environment.ts';
import { type TronConfig, tronConfig, tronProblems } from './tron.ts';

const PRODUCT_VARIABLES = { PRODUCT_CODE: true, PRODUCT_BIN: true, PRODUCT_NETWORK: true } as const;

export interface Config {
  host: string;
  port: number;
  /** Where readiness and metrics listen; null: with the API. */
  operations: { host: string; port: number } | null;
  databaseUrl: string;
  /** PostgreSQL itself, where databaseUrl is a connection pooler; null: databaseUrl is no pooler. */
  databaseDirectUrl: string | null;
  /** Whether a login that owns the schema, or could, is warned of instead of refused. */
  allowOwnerLogin: boolean;
  temporal: ClientConnectConfig;
  taskQueuePrefix: string;
  /** The workflows, bundled before the start; otherwise each process bundles them when it starts. */
  workflowBundle?: { codePath: string };
  encryptionKeys: RingKey[];
  cardNetwork: 'simulated' | 'none';
  cardCreationWaitMs: number;
  issuanceDeadlineMs: number;
  topUpDeadlineMs: number;
  /** How long to wait after each failed attempt. */
  webhookDelaysMs: number[];
  webhookTimeoutMs: number;
  webhookAllowLoopbackHttp: boolean;
  rateLimitPerSecond: number;
  rateLimitBurst: number;
  /** Requests of one account and mode at work at once in an API process. */
  accountConcurrency: number;
  depositAddressTtlMs: number;
  /** Null: no deposits. */
  tron: TronConfig | null;
  /** For tests: whether the API holds each of its answers against what it declares. */
  checkAnswers: boolean;
  logLevel: string;
}

/** Every problem of the environment at once; the message says what to change. */
export class ConfigurationError extends StartRefused {
  constructor(problems: string[]) {
    super(
      `The configuration is not valid. Correct these environment variables:\n${problems.map((p) => `  ${p}`).join('\n')}`,
    );
    this.name = 'ConfigurationError';
  }
}

/**
 * The configuration from the environment; an empty value counts as unset.
 * @throws ConfigurationError naming every problem. Values are not repeated in it: some of them are secret.
 */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const { set, values } = parse(Environment, env, serviceProblems);
  return {
    host: values.HOST,
    port: values.PORT,
    operations: operationsAddress(values),
    databaseUrl: values.DATABASE_URL,
    databaseDirectUrl: directUrl(values),
    allowOwnerLogin: values.ALLOW_OWNER_LOGIN === 'true',
    temporal: temporalConfig(set),
    taskQueuePrefix: values.TASK_QUEUE_PREFIX ?? '',
    ...(values.WORKFLOW_BUNDLE && { workflowBundle: { codePath: values.WORKFLOW_BUNDLE } }),
    encryptionKeys: values.ENCRYPTION_KEYS,
    cardNetwork: values.CARD_NETWORK,
    cardCreationWaitMs: values.CARD_CREATION_WAIT_MS,
    issuanceDeadlineMs: values.ISSUANCE_DEADLINE,
    topUpDeadlineMs: values.TOPUP_DEADLINE,
    webhookDelaysMs: values.WEBHOOK_RETRY_SCHEDULE,
    webhookTimeoutMs: values.WEBHOOK_TIMEOUT,
    webhookAllowLoopbackHttp: values.WEBHOOK_ALLOW_LOOPBACK_HTTP === 'true',
    rateLimitPerSecond: values.RATE_LIMIT_PER_SECOND,
    rateLimitBurst: values.RATE_LIMIT_BURST,
    accountConcurrency: values.ACCOUNT_CONCURRENCY,
    depositAddressTtlMs: values.DEPOSIT_ADDRESS_TTL,
    tron: tronConfig(values),
    checkAnswers: values.CHECK_ANSWERS === 'true',
    logLevel: values.LOG_LEVEL,
  };
}

function directUrl({
  DATABASE_URL,
  DATABASE_DIRECT_URL: direct,
}: z.infer<typeof Environment>): string | null {
  return direct === undefined || direct === DATABASE_URL ? null : direct;
}

/** Null where it is the API's own. */
function operationsAddress(values: z.infer<typeof Environment>): Config['operations'] {
  const { HOST, PORT, OPERATIONS_HOST: host = HOST, OPERATIONS_PORT: port = PORT } = values;
  return host === HOST && port === PORT ? null : { host, port };
}

/** What is wrong with several variables of the service together, or with the files they name. */
export function serviceProblems(set: NodeJS.ProcessEnv): string[] {
  const problems = tronProblems(set);
  try {
    if (set.TEMPORAL_ADDRESS) temporalConfig(set);
  } catch (error) {
    // The first line: what follows can quote the file, and so a key.
    const [problem] = String(error).split('\n');
    problems.push(`TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE, TEMPORAL_TLS_…: ${problem}`);
  }
  return problems;
}

/** What the Temporal SDK itself reads of the environment, and of the files that names. */
function temporalConfig(set: NodeJS.ProcessEnv): ClientConnectConfig {
  return loadClientConnectConfig({ overrideEnvVars: set as Record<string, string> });
}

export interface MigrationConfig {
  databaseUrl: string;
  firstProduct: { code: string; bin: string; network: string } | null;
}

/** What `npm run migrate` needs of it. @throws ConfigurationError */
export function readMigrationConfig(env: NodeJS.ProcessEnv = process.env): MigrationConfig {
  const { values, product } = parse(Environment.pick({ ...PRODUCT_VARIABLES, DATABASE_URL: true }), env);
  return { databaseUrl: values.DATABASE_URL, firstProduct: product };
}

/**
 * Checks the part of the environment that `schema` picks; an empty value counts as unset.
 * @param alsoWrong what else is wrong with what is set
 * @throws ConfigurationError naming every problem.
 */
export function parse<T extends object>(
  schema: z.ZodType<T>,
  env: NodeJS.ProcessEnv,
  alsoWrong: (set: NodeJS.ProcessEnv) => string[] = () => [],
): { set: NodeJS.ProcessEnv; values: T; product: MigrationConfig['firstProduct'] } {
  const problems: string[] = [];
  const set = withFiles(
    Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== '')),
    problems,
  );
  const parsed = schema.safeParse(set);
  if (!parsed.success) problems.push(...parsed.error.issues.map((issue) => describe(issue, set)));
  for (const name of Object.keys(set)) {
    if (OUR_PREFIX.test(name) && !KNOWN.has(name))
      problems.push(`${name}: is not a known variable; is it misspelt?`);
  }
  problems.push(...alsoWrong(set));
  const product = firstProduct((parsed.success ? parsed.data : set) as ProductVariables, problems);
  if (!parsed.success || problems.length > 0) throw new ConfigurationError(problems);
  return { set, values: parsed.data, product };
}

/** What is set, with the secrets that lie in files. A file's text is never part of a problem. */
function withFiles(set: NodeJS.ProcessEnv, problems: string[]): NodeJS.ProcessEnv {
  const values = { ...set };
  for (const name of IN_FILES) {
    const file = set[`${name}_FILE`];
    if (file === undefined) continue;
    delete values[`${name}_FILE`];
    if (set[name] !== undefined) {
      problems.push(`${name}, ${name}_FILE: set one of the two`);
      continue;
    }
    try {
      values[name] = readFileSync(file, 'utf8').trim();
    } catch (error) {
      problems.push(`${name}_FILE: can't be read (${(error as NodeJS.ErrnoException).code})`);
    }
  }
  return values;
}

type ProductVariables = Partial<Record<keyof typeof PRODUCT_VARIABLES, string | undefined>>;

function describe(issue: z.core.$ZodIssue, set: Record<string, unknown>): string {
  const name = String(issue.path[0]);
  return `${name}: ${name in set ? issue.message : 'is required'}`;
}

function firstProduct(values: ProductVariables, problems: string[]): MigrationConfig['firstProduct'] {
  const { PRODUCT_CODE: code, PRODUCT_BIN: bin, PRODUCT_NETWORK: network } = values;
  if (code && bin && network) return { code, bin, network };
  if (code || bin || network)
    problems.push('PRODUCT_CODE, PRODUCT_BIN, PRODUCT_NETWORK: set all three or none');
  return null;
}
