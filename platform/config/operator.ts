import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type ClientConnectConfig, loadClientConnectConfig } from '@temporalio/envconfig';
import { z } from 'zod';
import type { RingKey } from '../crypto/key-ring.ts';
import { increaseConfig, lithicConfig } from './card-networks.ts';
import { Environment, IN_FILES, VARIABLE_NAMES } from './environment.ts';
import { misspeltProblems } from './misspelt.ts';
import { ConfigurationError, parseEnvironment, withoutEmpty } from './read-environment.ts';

/** The configuration of the operator's command line. */
export type OperatorConfig = ReturnType<typeof readOperatorConfig>;

export const OperatorEnvironment = Environment.pick({
  DATABASE_URL: true,
  ALLOW_OWNER_LOGIN: true,
  ALLOW_PLAINTEXT_POSTGRES: true,
  ALLOW_PLAINTEXT_TEMPORAL: true,
  ALLOW_PLAINTEXT_HISTORIES: true,
  TEMPORAL_ADDRESS: true,
  TEMPORAL_NAMESPACE: true,
  TEMPORAL_API_KEY: true,
  TASK_QUEUE_PREFIX: true,
  ENCRYPTION_KEYS: true,
  CODEC_KEYS: true,
  CARD_NETWORK: true,
  INCREASE_API_KEY: true,
  INCREASE_BASE_URL: true,
  INCREASE_FUNDING_ACCOUNT_ID: true,
  INCREASE_PROGRAM_ID: true,
  INCREASE_ENTITY_ID: true,
  INCREASE_REAL_TIME_DECISIONS: true,
  INCREASE_REQUESTS_PER_SECOND: true,
  LITHIC_API_KEY: true,
  LITHIC_BASE_URL: true,
  LITHIC_CARD_PROGRAM_TOKEN: true,
  LITHIC_REQUESTS_PER_SECOND: true,
  NETWORK_KEY_LIFETIME: true,
  ISSUANCE_DEADLINE: true,
  TOPUP_DEADLINE: true,
  WITHDRAWAL_DEADLINE: true,
  AUTHORIZATION_TTL: true,
  WEBHOOK_ALLOW_LOOPBACK_HTTP: true,
  TRON_NETWORK: true,
  PUBLIC_URL: true,
  OPERATOR: true,
  ADJUSTMENT_APPROVAL_CENTS: true,
}).partial({ TEMPORAL_ADDRESS: true, ENCRYPTION_KEYS: true });

// The local stack's files in DATA_DIR: how to reach it, and the secrets that it generated.
const StackFile = z.object({
  databaseUrl: z.string(),
  workerDatabaseUrl: z.string(),
  ownerDatabaseUrl: z.string(),
  operatorDatabaseUrl: z.string(),
  temporalAddress: z.string(),
  temporalNamespace: z.string(),
  apiUrl: z.string(),
  codecEndpoint: z.string().optional(),
  /** How to reach the fake issuer; only with `--network`. */
  issuerEnvironment: z.record(z.string(), z.string()).optional(),
});
const SecretsFile = z.object({ encryptionKeys: z.string(), codecKeys: z.string().optional() });

/**
 * Reads the environment. If DATABASE_URL is not set, or is the local stack's, the stack in DATA_DIR fills in
 * the rest.
 * @throws ConfigurationError
 */
export function readOperatorConfig(env: NodeJS.ProcessEnv = process.env) {
  const dataDir = resolve(env.DATA_DIR || '.data');
  const stack = readJson(join(dataDir, 'stack.json'), StackFile);
  const isSet = Boolean(env.DATABASE_URL || env.DATABASE_URL_FILE);
  const isLocal = stack !== undefined && (!isSet || databaseUrls(stack).includes(env.DATABASE_URL ?? ''));
  if (!isSet && !isLocal) {
    throw new ConfigurationError([
      `DATABASE_URL: is not set, and no local stack has run in ${dataDir}: start one with npm start, or set DATABASE_URL`,
      ...misspeltProblems(withoutEmpty(env), VARIABLE_NAMES, IN_FILES),
    ]);
  }
  const secrets = isLocal ? readJson(join(dataDir, 'secrets.json'), SecretsFile) : undefined;
  const given = isLocal && isSet ? { ...env, DATABASE_URL: stack.operatorDatabaseUrl } : env;
  const { set, values } = parseEnvironment(
    OperatorEnvironment,
    given,
    (found) =>
      env.NODE_ENV === 'production' && !found.OPERATOR
        ? [
            "OPERATOR: is required, since everybody is the same user here; set it to the person's name or login",
          ]
        : [],
    isLocal
      ? {
          // The default of npm start.
          CARD_NETWORK: 'simulated',
          ...stack.issuerEnvironment,
          DATABASE_URL: stack.operatorDatabaseUrl,
          TEMPORAL_ADDRESS: stack.temporalAddress,
          TEMPORAL_NAMESPACE: stack.temporalNamespace,
          WEBHOOK_ALLOW_LOOPBACK_HTTP: 'true',
          PUBLIC_URL: new URL(stack.apiUrl).origin,
          ENCRYPTION_KEYS: secrets?.encryptionKeys,
          // If the stack has a codec endpoint, its workers encrypt.
          CODEC_KEYS: stack.codecEndpoint === undefined ? undefined : secrets?.codecKeys,
        }
      : {},
  );
  return {
    databaseUrl: values.DATABASE_URL,
    /** That of the schema's owner. Only `login create` and `revoke` use it. */
    ownerDatabaseUrl: isLocal ? stack.ownerDatabaseUrl : values.DATABASE_URL,
    /** Whether a login that owns the schema, or could, gets a warning instead of a refusal. */
    allowOwnerLogin: values.ALLOW_OWNER_LOGIN === 'true',
    /** Null if unknown; only commands about keys and secrets need it. */
    encryptionKeys: values.ENCRYPTION_KEYS ?? null,
    /** The first one encrypts what is sent to Temporal; null if nothing is encrypted. */
    codecKeys: values.CODEC_KEYS ?? null,
    /** Null if unknown; only commands about workflows need it. */
    temporal:
      values.TEMPORAL_ADDRESS === undefined
        ? null
        : loadClientConnectConfig({
            overrideEnvVars: set as Record<string, string>,
            // A profile in the user's own Temporal configuration is not meant for the local stack's server.
            disableFile: isLocal && !env.TEMPORAL_ADDRESS,
          }),
    taskQueuePrefix: values.TASK_QUEUE_PREFIX ?? '',
    cardNetwork: values.CARD_NETWORK,
    // Only `network reconcile` needs the issuers' keys, which are empty if they are not set.
    increase: increaseConfig(values),
    lithic: lithicConfig(values),
    networkKeyLifetimeMs: values.NETWORK_KEY_LIFETIME,
    issuanceDeadlineMs: values.ISSUANCE_DEADLINE,
    topUpDeadlineMs: values.TOPUP_DEADLINE,
    withdrawalDeadlineMs: values.WITHDRAWAL_DEADLINE,
    /** How long an authorization holds its amount at most. */
    authorizationTtlMs: values.AUTHORIZATION_TTL,
    webhookAllowLoopbackHttp: values.WEBHOOK_ALLOW_LOOPBACK_HTTP === 'true',
    /** A larger adjustment waits for a second operator; null: none does, unless the database has a limit. */
    adjustmentApprovalCents: values.ADJUSTMENT_APPROVAL_CENTS ?? null,
    /** Who runs the command line, if they say so. */
    operator: values.OPERATOR ?? null,
    /** The origin where browsers reach the API; null if unknown. Only `workbench link` needs it. */
    publicUrl: values.PUBLIC_URL ?? null,
    /** Null if unknown; only `tron` uses it. */
    tronNetwork: values.TRON_NETWORK ?? null,
  };
}

/**
 * How to reach Temporal, for commands that need nothing else: at TEMPORAL_ADDRESS, or the local stack's
 * server. Null if neither is known.
 * @throws ConfigurationError
 */
export function readTemporalConfig(env: NodeJS.ProcessEnv = process.env): ClientConnectConfig | null {
  if (!env.TEMPORAL_ADDRESS) return readOperatorConfig(env).temporal;
  const { set } = parseEnvironment(
    Environment.pick({ TEMPORAL_ADDRESS: true, TEMPORAL_NAMESPACE: true, TEMPORAL_API_KEY: true }),
    env,
  );
  return loadClientConnectConfig({ overrideEnvVars: set as Record<string, string> });
}

/** The keys that histories are encrypted with; null if they aren't. @throws ConfigurationError */
export function readCodecKeys(env: NodeJS.ProcessEnv = process.env): RingKey[] | null {
  return parseEnvironment(Environment.pick({ CODEC_KEYS: true }), env).values.CODEC_KEYS ?? null;
}

const databaseUrls = (stack: z.infer<typeof StackFile>): string[] => [
  stack.databaseUrl,
  stack.workerDatabaseUrl,
  stack.ownerDatabaseUrl,
  stack.operatorDatabaseUrl,
];

/**
 * Undefined if there is no such file. @throws ConfigurationError if it can't be read or is something else.
 */
function readJson<T>(path: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    const problem = code === undefined ? 'is not what npm start writes' : `can't be read (${code})`;
    throw new ConfigurationError([`DATA_DIR: ${path} ${problem}: restart npm start, or set DATABASE_URL`]);
  }
}
