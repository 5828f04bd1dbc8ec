import { type ClientConnectConfig, loadClientConnectConfig } from '@temporalio/envconfig';
import { z } from 'zod';
import type { RingKey } from './db/key-ring.ts';
import { parseDuration } from './domain/duration.ts';

const Text = z.string().min(1);
const Duration = z.string().transform((text, ctx) => {
  const durationMs = parseDuration(text);
  if (durationMs === undefined) ctx.addIssue('must be a duration: 250ms, 30s, 5m or 8h');
  return durationMs ?? z.NEVER;
});
const wholeNumber = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, error)
    .transform(Number)
    .pipe(z.number().min(min, error).max(max, error));
};
const Port = wholeNumber(1, 65_535);
const PostgresUrl = z.url({ protocol: /^postgres(ql)?$/, error: 'must be a postgres:// URL' });

const Keys = z.string().transform((text, ctx): RingKey[] => {
  const keys = text.split(',').map((part) => {
    const [, id, encoded] = /^([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/]{43}=)$/.exec(part.trim()) ?? [];
    return { id: id ?? '', secret: Buffer.from(encoded ?? '', 'base64') };
  });
  if (keys.some((key) => key.secret.length !== 32)) {
    ctx.addIssue('must be id:base64(32 bytes), comma-separated, the current key first');
  } else if (new Set(keys.map((key) => key.id)).size !== keys.length) {
    ctx.addIssue('must not name one key id twice');
  }
  return keys;
});

/** operations.md, "Configuration"; the variables of later features are only checked for their names. */
export const Environment = z.object({
  HOST: Text.default('127.0.0.1'),
  PORT: Port.default(3000),
  DATABASE_URL: PostgresUrl,
  TEMPORAL_ADDRESS: Text,
  TEMPORAL_NAMESPACE: Text.default('default'),
  // Anything else would turn TLS off without a word.
  TEMPORAL_TLS: z.enum(['true', 'false', '1', '0'], 'must be true or false').optional(),
  TASK_QUEUE_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be letters, digits, _ or -')
    .optional(),
  ENCRYPTION_KEYS: Keys,
  CARD_NETWORK: z.enum(['simulated', 'none']).default('none'),
  PRODUCT_CODE: Text.optional(),
  PRODUCT_BIN: z
    .string()
    .regex(/^\d{6,8}$/, 'must be 6 to 8 digits')
    .optional(),
  PRODUCT_NETWORK: Text.optional(),
  CARD_CREATION_WAIT_MS: wholeNumber(1, 60_000).default(8_000),
  ISSUANCE_DEADLINE: Duration.default(24 * 3_600_000),
  RATE_LIMIT_PER_SECOND: wholeNumber(0, 1_000_000).default(100),
  RATE_LIMIT_BURST: wholeNumber(0, 1_000_000).default(200),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
});

const PRODUCT_VARIABLES = { PRODUCT_CODE: true, PRODUCT_BIN: true, PRODUCT_NETWORK: true } as const;

const KNOWN = new Set([
  ...Object.keys(Environment.shape),
  ...['WEBHOOK_RETRY_SCHEDULE', 'WEBHOOK_TIMEOUT', 'WEBHOOK_ALLOW_LOOPBACK_HTTP', 'TOPUP_DEADLINE'],
  ...[
    'TRON_NETWORK',
    'TRON_NODE_URLS',
    'TRON_API_KEY',
    'TRON_USDT_CONTRACT',
    'TRON_XPUB',
    'TRON_SCAN_INTERVAL',
  ],
  'DEPOSIT_ADDRESS_TTL',
]);
const OUR_PREFIX =
  /^(CARD_|PRODUCT_|ISSUANCE_|TOPUP_|WEBHOOK_|TRON_|DEPOSIT_|RATE_LIMIT_|ENCRYPTION_|TASK_QUEUE_)/;

export interface Config {
  host: string;
  port: number;
  databaseUrl: string;
  temporal: ClientConnectConfig;
  taskQueuePrefix: string;
  encryptionKeys: RingKey[];
  cardNetwork: 'simulated' | 'none';
  cardCreationWaitMs: number;
  issuanceDeadlineMs: number;
  rateLimitPerSecond: number;
  rateLimitBurst: number;
  logLevel: string;
}

/** Every problem of the environment at once; the message says what to change. */
export class ConfigurationError extends Error {
  constructor(problems: string[]) {
    super(
      `The configuration is not usable. Correct these environment variables:\n${problems.map((p) => `  ${p}`).join('\n')}`,
    );
    this.name = 'ConfigurationError';
  }
}

/**
 * The configuration from the environment; an empty value counts as unset.
 * @throws ConfigurationError naming every problem. Values are not repeated in it: some of them are secret.
 */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const { set, values } = parse(Environment, env);
  return {
    host: values.HOST,
    port: values.PORT,
    databaseUrl: values.DATABASE_URL,
    temporal: temporalConfig(set),
    taskQueuePrefix: values.TASK_QUEUE_PREFIX ?? '',
    encryptionKeys: values.ENCRYPTION_KEYS,
    cardNetwork: values.CARD_NETWORK,
    cardCreationWaitMs: values.CARD_CREATION_WAIT_MS,
    issuanceDeadlineMs: values.ISSUANCE_DEADLINE,
    rateLimitPerSecond: values.RATE_LIMIT_PER_SECOND,
    rateLimitBurst: values.RATE_LIMIT_BURST,
    logLevel: values.LOG_LEVEL,
  };
}

/** What the Temporal SDK itself reads of the environment, and of the files that names. */
function temporalConfig(set: NodeJS.ProcessEnv): ClientConnectConfig {
  try {
    return loadClientConnectConfig({ overrideEnvVars: set as Record<string, string> });
  } catch (error) {
    // The first line: what follows can quote the file, and so a key.
    const [problem] = String(error).split('\n');
    throw new ConfigurationError([`TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE, TEMPORAL_TLS_…: ${problem}`]);
  }
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

/** Checks the part of the environment that `schema` picks. @throws ConfigurationError naming every problem. */
export function parse<T extends object>(
  schema: z.ZodType<T>,
  env: NodeJS.ProcessEnv,
): { set: NodeJS.ProcessEnv; values: T; product: MigrationConfig['firstProduct'] } {
  const set = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
  const parsed = schema.safeParse(set);
  const problems = parsed.success ? [] : parsed.error.issues.map((issue) => describe(issue, set));
  for (const name of Object.keys(set)) {
    if (OUR_PREFIX.test(name) && !KNOWN.has(name))
      problems.push(`${name}: there is no such variable; is it misspelt?`);
  }
  const product = firstProduct((parsed.success ? parsed.data : set) as ProductVariables, problems);
  if (!parsed.success || problems.length > 0) throw new ConfigurationError(problems);
  return { set, values: parsed.data, product };
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
