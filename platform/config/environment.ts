import { z } from 'zod';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { ApiParts } from './api-parts.ts';
import { NETWORK_VARIABLES } from './card-networks.ts';
import { TRON_VARIABLES } from './tron.ts';
import {
  CidrBlocks,
  Duration,
  Durations,
  durationUpTo,
  ExporterHeaders,
  HTTP,
  Keys,
  LedgerCheckAt,
  Origins,
  Port,
  PostgresUrl,
  PublicUrl,
  Ratio,
  Text,
  Tokens,
  WebhookTimeout,
  WorkerQueues,
  wholeNumber,
  YesOrNo,
} from './values.ts';

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
