import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type ClientConnectConfig, loadClientConnectConfig } from '@temporalio/envconfig';
import { z } from 'zod';
import type { RingKey } from '../crypto/key-ring.ts';
import { Environment } from './environment.ts';
import { ConfigurationError, parse } from './service.ts';
import type { TronConfig } from './tron.ts';

/** What the operator's command line works with. */
export interface OperatorConfig {
  databaseUrl: string;
  /** Whether a login that owns the schema, or could, is warned of instead of refused. */
  allowOwnerLogin: boolean;
  /** Null where it is not known; only making an API key takes it. */
  encryptionKeys: RingKey[] | null;
  /** Null where it is not known; only the workflows of cards take it. */
  temporal: ClientConnectConfig | null;
  taskQueuePrefix: string;
  cardNetwork: 'simulated' | 'none';
  issuanceDeadlineMs: number;
  topUpDeadlineMs: number;
  webhookAllowLoopbackHttp: boolean;
  /** Null where it is not known; only the reading of the chain takes it. */
  tronNetwork: TronConfig['network'] | null;
}

const OperatorEnvironment = Environment.pick({
  DATABASE_URL: true,
  ALLOW_OWNER_LOGIN: true,
  TEMPORAL_ADDRESS: true,
  TEMPORAL_NAMESPACE: true,
  TASK_QUEUE_PREFIX: true,
  ENCRYPTION_KEYS: true,
  CARD_NETWORK: true,
  ISSUANCE_DEADLINE: true,
  TOPUP_DEADLINE: true,
  WEBHOOK_ALLOW_LOOPBACK_HTTP: true,
  TRON_NETWORK: true,
}).partial({ TEMPORAL_ADDRESS: true, ENCRYPTION_KEYS: true });

// What the local stack keeps in DATA_DIR: its public file, and the one that remembers what it generated.
const StackFile = z.object({
  databaseUrl: z.string(),
  ownerDatabaseUrl: z.string(),
  operatorDatabaseUrl: z.string(),
  temporalAddress: z.string(),
  temporalNamespace: z.string(),
});
const SecretsFile = z.object({ encryptionKeys: z.string() });

/**
 * The environment, completed by the local stack in DATA_DIR where DATABASE_URL is not set, or is one of the URLs of its database.
 * @throws ConfigurationError naming every problem.
 */
export function readOperatorConfig(env: NodeJS.ProcessEnv = process.env): OperatorConfig {
  const dataDir = resolve(env.DATA_DIR || '.data');
  const stack = readJson(join(dataDir, 'stack.json'), StackFile);
  const isSet = Boolean(env.DATABASE_URL || env.DATABASE_URL_FILE);
  const isLocal = stack !== undefined && (!isSet || urlsOf(stack).includes(env.DATABASE_URL ?? ''));
  if (!isSet && !isLocal) {
    throw new ConfigurationError([
      `DATABASE_URL: is not set, and no local stack has run in ${dataDir}: start one with npm start, or set DATABASE_URL`,
    ]);
  }
  const environment = Object.entries(env).filter(
    ([name, value]) => value && !(isLocal && name === 'DATABASE_URL'),
  );
  const { set, values } = parse(OperatorEnvironment, {
    ...(isLocal && {
      // As npm start has it by default.
      CARD_NETWORK: 'simulated',
      DATABASE_URL: stack.operatorDatabaseUrl,
      TEMPORAL_ADDRESS: stack.temporalAddress,
      TEMPORAL_NAMESPACE: stack.temporalNamespace,
      WEBHOOK_ALLOW_LOOPBACK_HTTP: 'true',
      ENCRYPTION_KEYS: readJson(join(dataDir, 'secrets.json'), SecretsFile)?.encryptionKeys,
    }),
    ...Object.fromEntries(environment),
  });
  return {
    databaseUrl: values.DATABASE_URL,
    allowOwnerLogin: values.ALLOW_OWNER_LOGIN === 'true',
    encryptionKeys: values.ENCRYPTION_KEYS ?? null,
    temporal:
      values.TEMPORAL_ADDRESS === undefined
        ? null
        : loadClientConnectConfig({
            overrideEnvVars: set as Record<string, string>,
            // A profile in the user's own Temporal configuration is not meant for the server of the local stack.
            disableFile: isLocal && !env.TEMPORAL_ADDRESS,
          }),
    taskQueuePrefix: values.TASK_QUEUE_PREFIX ?? '',
    cardNetwork: values.CARD_NETWORK,
    issuanceDeadlineMs: values.ISSUANCE_DEADLINE,
    topUpDeadlineMs: values.TOPUP_DEADLINE,
    webhookAllowLoopbackHttp: values.WEBHOOK_ALLOW_LOOPBACK_HTTP === 'true',
    tronNetwork: values.TRON_NETWORK ?? null,
  };
}

const urlsOf = (stack: z.infer<typeof StackFile>): string[] => [
  stack.databaseUrl,
  stack.ownerDatabaseUrl,
  stack.operatorDatabaseUrl,
];

/** Undefined where there is no such file. @throws ConfigurationError where it can't be read or says something else. */
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
