import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import type { RingKey } from '../crypto/key-ring.ts';
import { StartRefused } from '../process/run-process.ts';
import { ApiParts } from './api-parts.ts';
import { NETWORK_VARIABLES } from './card-networks.ts';
import { parseDuration } from './duration.ts';
import { misspeltProblems } from './misspelt.ts';
import { plaintextProblems } from './plaintext.ts';
import { WORKER_QUEUES } from './task-queues.ts';
import { parseTimeOfDay } from './time-of-day.ts';
import { TRON_VARIABLES } from './tron.ts';

const Text = z.string().min(1);
const Duration = z.string().transform((text, ctx) => {
  const durationMs = parseDuration(text);
  if (durationMs === undefined) ctx.addIssue('must be a duration: 250ms, 30s, 5m or 8h');
  return durationMs ?? z.NEVER;
});
const WebhookTimeout = Duration.refine(
  (timeoutMs) => timeoutMs >= 1 && timeoutMs <= 20_000,
  "must be a duration from 1ms to 20s, since an attempt takes up one of its endpoint's slots for that long",
);
const durationUpTo = (maxMs: number, max: string) =>
  Duration.refine(
    (durationMs) => durationMs > 0 && durationMs <= maxMs,
    `must be longer than 0 and at most ${max}`,
  );
const Durations = z
  .string()
  .transform((text) => text.split(',').map((part) => part.trim()))
  .pipe(z.array(Duration).min(1).max(20, 'must be at most 20 durations'));
const LedgerCheckAt = z.string().transform((text, ctx) => {
  const time = parseTimeOfDay(text);
  if (time === undefined) ctx.addIssue('must be a time of day in UTC, such as 03:00');
  return time ?? z.NEVER;
});
const wholeNumber = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, error)
    .transform(Number)
    .pipe(z.number().min(min, error).max(max, error));
};
export const Port = wholeNumber(1, 65_535);
const PostgresUrl = z.url({ protocol: /^postgres(ql)?$/, error: 'must be a postgres:// URL' });

const Keys = z.string().transform((text, ctx): RingKey[] => {
  const keys = text.split(',').map((part) => {
    const [, id, encoded] = /^([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/]{43}=)$/.exec(part.trim()) ?? [];
    return { id: id ?? '', secret: Buffer.from(encoded ?? '', 'base64') };
  });
  if (keys.some((key) => key.secret.length !== 32)) {
    ctx.addIssue('must be id:base64(32 bytes), comma-separated, the current key first');
  } else if (new Set(keys.map((key) => key.id)).size !== keys.length) {
    ctx.addIssue('must not contain a key id twice');
  }
  return keys;
});

const YesOrNo = z.enum(['true', 'false'], 'must be true or false').default('false');
const HTTP = { protocol: /^https?$/, error: 'must be an http(s) URL' };
const Ratio = z
  .string()
  .regex(/^(0(\.\d{1,9})?|1(\.0{1,9})?)$/, 'must be from 0 to 1')
  .default('1')
  .transform(Number);
/** In OpenTelemetry's format: `name=value`, comma-separated, values percent-encoded. */
const ExporterHeaders = z
  .string()
  .regex(
    /^([!#$&'*+.^_`|~\w-]+=[^,\s]*)?(,[!#$&'*+.^_`|~\w-]+=[^,\s]*)*$/,
    'must be name=value, comma-separated',
  )
  .default('')
  .transform((text) =>
    Object.fromEntries(
      text
        .split(',')
        .filter(Boolean)
        .map((pair) => [
          pair.slice(0, pair.indexOf('=')),
          decodeURIComponent(pair.slice(pair.indexOf('=') + 1)),
        ]),
    ),
  );
const splitList = (text: string): string[] => text.split(',').map((part) => part.trim());
const Tokens = z
  .string()
  .transform(splitList)
  .pipe(z.array(z.string().regex(/^[A-Za-z0-9_-]{32,}$/, 'each must be 32 or more letters, digits, _ or -')));
const WorkerQueues = z
  .string()
  .transform(splitList)
  .pipe(z.array(z.enum(WORKER_QUEUES, `must be of ${WORKER_QUEUES.join(', ')}, comma-separated`)))
  .refine((names) => new Set(names).size === names.length, 'must not name a queue twice')
  .default([...WORKER_QUEUES]);
const Origins = z
  .string()
  .refine(
    (text) => text === '' || splitList(text).every((url) => URL.canParse(url) && new URL(url).origin === url),
    'must be origins such as https://temporal.example.com, comma-separated',
  )
  .default('')
  .transform((text) => (text === '' ? [] : splitList(text)));

/** An origin that browsers trust with a cookie: https, or on this machine. */
const PublicUrl = z
  .string()
  .refine(
    (text) => URL.canParse(text) && new URL(text).origin === text && isTrustworthy(new URL(text)),
    'must be an origin such as https://api.example.com; http only on loopback',
  );
const isTrustworthy = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
export const isLoopback = (host: string): boolean => /^(localhost|127(\.\d+){3}|(\[::1\]|::1))$/.test(host);

/** Proxies' addresses as blocks. A block of everybody would let any client choose its own address. */
const CidrBlocks = z
  .string()
  .transform(splitList)
  .pipe(
    z.array(
      z
        .string()
        .refine(
          (block) =>
            ipaddr.IPv4.isValidCIDRFourPartDecimal(block) ||
            (ipaddr.IPv6.isValidCIDR(block) && !ipaddr.IPv6.parseCIDR(block)[0].isIPv4MappedAddress()),
          'must be CIDR blocks such as 10.0.0.0/8 or 2001:db8::/32, comma-separated',
        )
        .refine((block) => !/\/0+$/.test(block), 'must not trust every address')
        .transform((block) => ipaddr.parseCIDR(block)),
    ),
  )
  .default([]);

/** Every variable of the service, with its default (docs/operating.md, "Configuration"). */
export const Environment = z.object({
  HOST: Text.default('127.0.0.1'),
  PORT: Port.default(3000),
  API_PARTS: ApiParts,
  PUBLIC_URL: PublicUrl.optional(),
  OPERATIONS_HOST: Text.optional(),
  OPERATIONS_PORT: Port.optional(),
  WORKER_HOST: Text.optional(),
  DRAIN_DELAY: Duration.refine((delayMs) => delayMs <= 60_000, 'must be at most 1m').default(0),
  WORKER_PORT: wholeNumber(0, 65_535).default(3001),
  WORKER_QUEUES: WorkerQueues,
  DATABASE_URL: PostgresUrl,
  DATABASE_DIRECT_URL: PostgresUrl.optional(),
  READ_DATABASE_URL: PostgresUrl.optional(),
  ALLOW_OWNER_LOGIN: YesOrNo,
  ALLOW_PLAINTEXT_POSTGRES: YesOrNo,
  ALLOW_PLAINTEXT_TEMPORAL: YesOrNo,
  ALLOW_PLAINTEXT_HISTORIES: YesOrNo,
  ALLOW_PLAINTEXT_JWKS: YesOrNo,
  TEMPORAL_ADDRESS: Text,
  TEMPORAL_NAMESPACE: Text.default('default'),
  TEMPORAL_API_KEY: Text.optional(),
  // The Temporal SDK treats anything else as false, and would not encrypt.
  TEMPORAL_TLS: z.enum(['true', 'false', '1', '0'], 'must be true or false').optional(),
  TASK_QUEUE_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be letters, digits, _ or -')
    .optional(),
  WORKFLOW_BUNDLE: Text.optional(),
  // The names that Temporal's Worker Controller sets on Kubernetes.
  TEMPORAL_DEPLOYMENT_NAME: z
    .string()
    .regex(/^[A-Za-z0-9/_-]{1,200}$/, 'must be letters, digits, /, _ or -')
    .optional(),
  TEMPORAL_WORKER_BUILD_ID: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,100}$/, 'must be letters, digits, ., _ or -')
    .optional(),
  ENCRYPTION_KEYS: Keys,
  CODEC_KEYS: Keys.optional(),
  CODEC_HOST: Text.optional(),
  CODEC_PORT: Port.default(3002),
  CODEC_TOKENS: Tokens.optional(),
  CODEC_ALLOWED_ORIGINS: Origins,
  CODEC_JWKS_URL: z.url(HTTP).optional(),
  CODEC_JWT_ISSUER: Text.optional(),
  CODEC_JWT_AUDIENCE: Text.optional(),
  ...NETWORK_VARIABLES,
  NETWORK_KEY_LIFETIME: Duration.default(20 * 3_600_000),
  PRODUCT_CODE: Text.optional(),
  PRODUCT_BIN: z
    .string()
    .regex(/^\d{6,8}$/, 'must be 6 to 8 digits')
    .optional(),
  PRODUCT_NETWORK: Text.optional(),
  CARD_CREATION_WAIT_MS: wholeNumber(1, 60_000).default(8_000),
  ISSUANCE_DEADLINE: Duration.default(24 * 3_600_000),
  TOPUP_DEADLINE: Duration.default(24 * 3_600_000),
  WITHDRAWAL_DEADLINE: Duration.default(24 * 3_600_000),
  AUTHORIZATION_TTL: durationUpTo(365 * 24 * 3_600_000, '8760h').default(168 * 3_600_000),
  WEBHOOK_RETRY_SCHEDULE: Durations.default([30_000, 300_000, 1_800_000, 7_200_000]),
  WEBHOOK_TIMEOUT: WebhookTimeout.default(10_000),
  WEBHOOK_ALLOW_LOOPBACK_HTTP: YesOrNo,
  RATE_LIMIT_PER_SECOND: wholeNumber(0, 1_000_000).default(100),
  RATE_LIMIT_BURST: wholeNumber(0, 1_000_000).default(200),
  ACCOUNT_CONCURRENCY: wholeNumber(1, 1_000).default(16),
  STORED_MB_PER_DAY: wholeNumber(0, 1_000_000).default(2_000),
  TRUSTED_PROXIES: CidrBlocks,
  ...TRON_VARIABLES,
  DEPOSIT_ADDRESS_TTL: durationUpTo(30 * 24 * 3_600_000, '720h').default(8 * 3_600_000),
  // A longer interval would by itself be a lag that alerts operators.
  TRON_SCAN_INTERVAL: durationUpTo(60_000, '1m').default(3_000),
  OTEL_SDK_DISABLED: YesOrNo,
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url(HTTP).optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z.url(HTTP).optional(),
  OTEL_EXPORTER_OTLP_HEADERS: ExporterHeaders,
  OTEL_TRACES_SAMPLER_ARG: Ratio,
  LEDGER_CHECK_AT: LedgerCheckAt.default({ hour: 3, minute: 0 }),
  ADJUSTMENT_APPROVAL_CENTS: wholeNumber(0, MAX_AMOUNT_CENTS).optional(),
  OPERATOR: z
    .string()
    .regex(
      /^[\x21-\x7e]{1,100}$/,
      'must be 1 to 100 printable ASCII characters without spaces, such as a login',
    )
    .optional(),
  IGNORED_VARIABLES: z
    .string()
    .regex(/^\w+(\s*,\s*\w+)*$/, 'must be names of variables, comma-separated')
    .optional(),
  CHECK_ANSWERS: YesOrNo,
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
});

export const VARIABLE_NAMES = new Set(Object.keys(Environment.shape));

/**
 * Secrets can also be given as files, as orchestrators do: DATABASE_URL_FILE names a file that contains
 * DATABASE_URL. A process opens only the files of secrets that are in its schema.
 */
export const IN_FILES: readonly string[] = [
  'DATABASE_URL',
  'DATABASE_DIRECT_URL',
  'READ_DATABASE_URL',
  'ENCRYPTION_KEYS',
  'TEMPORAL_API_KEY',
  'CODEC_KEYS',
  'CODEC_TOKENS',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'INCREASE_API_KEY',
  'INCREASE_WEBHOOK_SECRET',
  'LITHIC_API_KEY',
  'LITHIC_WEBHOOK_SECRET',
  'LITHIC_ASA_SECRET',
  'TRON_NODE_URLS',
  'TRON_API_KEY',
  'TRON_XPUB',
];

/** How long ENCRYPTION_KEYS_COMMAND may take, and how much it may print. */
const COMMAND_TIMEOUT_MS = 30_000;
const MAX_COMMAND_BYTES = 65_536;

/** Names every problem of the environment at once, and never repeats a value: it may be secret. */
export class ConfigurationError extends StartRefused {
  constructor(problems: string[]) {
    const lines = problems.map((problem) => `  ${problem}`).join('\n');
    super(`The configuration is not valid. Correct these environment variables:\n${lines}`);
    this.name = 'ConfigurationError';
  }
}

/**
 * Reads the variables in `schema`. An empty value counts as unset.
 * @param alsoWrong finds problems that involve several variables
 * @param defaults for variables that are not set
 * @throws ConfigurationError
 */
export function parseEnvironment<T extends object>(
  schema: z.ZodType<T> & { shape: object },
  env: NodeJS.ProcessEnv,
  alsoWrong: (set: NodeJS.ProcessEnv) => string[] = () => [],
  defaults: NodeJS.ProcessEnv = {},
): { set: NodeJS.ProcessEnv; values: T } {
  const asked = withoutEmpty(env);
  const given = { ...withoutEmpty(defaults), ...asked };
  const isRead = (name: string) => name in schema.shape;
  const { set, problems } = readSecretFiles(given, isRead);
  if (isRead('ENCRYPTION_KEYS')) problems.push(...runKeysCommand(set, asked));
  const parsed = schema.safeParse(set);
  if (!parsed.success) problems.push(...parsed.error.issues.map((issue) => describeIssue(issue, set)));
  problems.push(...misspeltProblems(asked, VARIABLE_NAMES, IN_FILES), ...alsoWrong(set));
  problems.push(...plaintextProblems(set, isRead));
  if (!parsed.success || problems.length > 0) throw new ConfigurationError(problems);
  return { set, values: parsed.data };
}

export function withoutEmpty(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
}

function readSecretFiles(
  env: NodeJS.ProcessEnv,
  isRead: (name: string) => boolean,
): { set: NodeJS.ProcessEnv; problems: string[] } {
  const set = { ...env };
  const problems: string[] = [];
  for (const name of IN_FILES) {
    const file = env[`${name}_FILE`];
    if (file === undefined) continue;
    delete set[`${name}_FILE`];
    if (env[name] !== undefined) {
      problems.push(`${name}, ${name}_FILE: set only one of the two`);
      continue;
    }
    if (!isRead(name)) continue;
    try {
      set[name] = readFileSync(file, 'utf8').trim();
    } catch (error) {
      problems.push(`${name}_FILE: can't be read (${(error as NodeJS.ErrnoException).code})`);
    }
  }
  return { set, problems };
}

/**
 * Takes ENCRYPTION_KEYS from what ENCRYPTION_KEYS_COMMAND prints, so that Vault or a cloud's KMS can serve
 * them. What it prints is never repeated; its standard error goes to this process's, for the person who
 * starts it.
 */
function runKeysCommand(set: NodeJS.ProcessEnv, asked: NodeJS.ProcessEnv): string[] {
  const command = asked.ENCRYPTION_KEYS_COMMAND;
  if (command === undefined) return [];
  delete set.ENCRYPTION_KEYS_COMMAND;
  if (asked.ENCRYPTION_KEYS !== undefined || asked.ENCRYPTION_KEYS_FILE !== undefined)
    return ['ENCRYPTION_KEYS, ENCRYPTION_KEYS_FILE, ENCRYPTION_KEYS_COMMAND: set only one of the three'];
  const { status, signal, error, stdout } = spawnSync('/bin/sh', ['-c', command], {
    encoding: 'utf8',
    env: process.env,
    maxBuffer: MAX_COMMAND_BYTES,
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: COMMAND_TIMEOUT_MS,
  });
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (code === 'ETIMEDOUT')
    return [
      `ENCRYPTION_KEYS_COMMAND: took longer than ${COMMAND_TIMEOUT_MS / 1_000} s; run it by hand to see why`,
    ];
  if (code !== undefined || status !== 0)
    return [
      `ENCRYPTION_KEYS_COMMAND: failed (${code ?? signal ?? `exit code ${status}`}); run it by hand to see why`,
    ];
  const printed = stdout.trim();
  if (printed === '')
    return ['ENCRYPTION_KEYS_COMMAND: printed nothing; it has to print id:base64(32 bytes), comma-separated'];
  set.ENCRYPTION_KEYS = printed;
  return [];
}

function describeIssue(issue: z.core.$ZodIssue, set: NodeJS.ProcessEnv): string {
  const name = String(issue.path[0]);
  return `${name}: ${name in set ? issue.message : 'is required'}`;
}
