import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { IN_FILES, VARIABLE_NAMES } from '../../platform/config/environment.ts';
import { childEnvironment } from '../process/child.ts';
import type { DataFolder } from './data-folder.ts';
import type { Ports } from './ports.ts';
import type { Settings } from './settings.ts';

interface ServiceEnvironmentOptions {
  folder: DataFolder;
  settings: Settings;
  databaseUrl: string;
  temporalAddress: string;
  encryptionKeys: string;
  /** Undefined: payloads are not encrypted. */
  codecKeys: string | undefined;
  workerPort: number;
  /** The variables of deposits, if the stack runs a chain of its own. */
  tron: NodeJS.ProcessEnv | undefined;
  /** The variables of the card network, if the stack runs an issuer of its own. */
  issuer: NodeJS.ProcessEnv | undefined;
}

const FILE_VARIABLES = new Set(IN_FILES.map((name) => `${name}_FILE`));

const FIRST_PRODUCT = { PRODUCT_CODE: 'visa-virtual-usd', PRODUCT_BIN: '424242', PRODUCT_NETWORK: 'visa' };

/** The environment of the worker and the API: ours, plus what the local stack knows, plus its defaults. */
export function serviceEnvironment(options: ServiceEnvironmentOptions): NodeJS.ProcessEnv {
  const { settings } = options;
  const isTemporalAsked = settings.TEMPORAL_ADDRESS !== undefined;
  const set = childEnvironment(
    (name) =>
      VARIABLE_NAMES.has(name) ||
      FILE_VARIABLES.has(name) ||
      name.startsWith('OTEL_') ||
      // Libraries read these as well as we do.
      (isTemporalAsked && name.startsWith('TEMPORAL_')) ||
      (settings.DATABASE_URL !== undefined && /^PG[A-Z]+$/.test(name)),
  );
  const productIsSet = Object.keys(FIRST_PRODUCT).some((name) => set[name] !== undefined);
  const own: NodeJS.ProcessEnv = {
    ...(!isTemporalAsked && withoutTemporal(options.folder)),
    DATABASE_URL: options.databaseUrl,
    // `npm start` uses no pooler.
    DATABASE_DIRECT_URL: undefined,
    READ_DATABASE_URL: undefined,
    TEMPORAL_ADDRESS: options.temporalAddress,
    TEMPORAL_NAMESPACE: settings.TEMPORAL_NAMESPACE,
    HOST: settings.HOST,
    PORT: String(settings.PORT),
    PUBLIC_URL: undefined,
    WORKER_PORT: String(options.workerPort),
    ENCRYPTION_KEYS: options.encryptionKeys,
    CODEC_KEYS: options.codecKeys,
    ...options.tron,
    ...options.issuer,
  };
  // What the stack sets can't come from a file as well.
  for (const name of Object.keys(own)) delete set[`${name}_FILE`];
  return {
    CARD_NETWORK: 'simulated',
    WEBHOOK_ALLOW_LOOPBACK_HTTP: 'true',
    ...(!productIsSet && FIRST_PRODUCT),
    ...set,
    ...own,
  };
}

/** The environment of the codec endpoint: its keys and who may ask, nothing of the service's. */
export function codecEnvironment(options: {
  settings: Settings;
  ports: Pick<Ports, 'codec' | 'temporalUi'>;
  keys: string;
  token: string;
}): NodeJS.ProcessEnv {
  const { settings, ports, keys, token } = options;
  return {
    ...childEnvironment((name) => name === 'LOG_LEVEL'),
    CODEC_HOST: '127.0.0.1',
    CODEC_PORT: String(ports.codec),
    CODEC_KEYS: keys,
    CODEC_TOKENS: token,
    CODEC_ALLOWED_ORIGINS: ['127.0.0.1', 'localhost']
      .map((host) => `http://${host}:${ports.temporalUi}`)
      .join(','),
    TEMPORAL_NAMESPACE: settings.TEMPORAL_NAMESPACE,
  };
}

/**
 * A profile in the user's own Temporal configuration (an API key, TLS) is not meant for the server we
 * started.
 */
function withoutTemporal(folder: DataFolder): NodeJS.ProcessEnv {
  mkdirSync(folder.temporal, { recursive: true, mode: 0o700 });
  const profile = join(folder.temporal, 'client-profile.toml');
  writeFileSync(profile, '[profile.default]\n');
  return { TEMPORAL_API_KEY: undefined, TEMPORAL_TLS: undefined, TEMPORAL_CONFIG_FILE: profile };
}
