import { loadClientConnectConfig } from '@temporalio/envconfig';
import ConnectionParameters from 'pg/lib/connection-parameters';
import { isLoopback } from './values.ts';

/**
 * Names what would be in clear: connections that leave this machine without TLS, and, in production
 * (NODE_ENV, as the image sets it), histories that Temporal stores. Each has a variable that accepts it.
 * @param set with the secrets of files
 * @param isRead whether the process reads a variable; of others, it uses nothing
 */
export function plaintextProblems(set: NodeJS.ProcessEnv, isRead: (name: string) => boolean): string[] {
  return [
    ...['DATABASE_URL', 'DATABASE_DIRECT_URL', 'READ_DATABASE_URL']
      .filter(isRead)
      .flatMap((name) => postgresProblems(name, set)),
    // A process that connects to Temporal reads this, too.
    ...(isRead('TEMPORAL_API_KEY') ? temporalProblems(set) : []),
    ...(isRead('TEMPORAL_API_KEY') && isRead('CODEC_KEYS') ? historyProblems(set) : []),
  ];
}

function postgresProblems(name: string, set: NodeJS.ProcessEnv): string[] {
  const url = set[name];
  if (url === undefined || !/^postgres(ql)?:/.test(url)) return [];
  let connection: ConnectionParameters;
  try {
    // The driver's own reading of the URL, since a parameter such as `host` overrides what is before it.
    connection = new ConnectionParameters(url);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === undefined ? 'are not valid' : `name a file that can't be read (${code})`;
    return [`${name}: its parameters for TLS ${why}; see docs/operating.md, "Connections in clear"`];
  }
  // The driver keeps a value of `ssl` that it does not know, and fails when it connects.
  if (typeof connection.ssl === 'string')
    return [`${name}: its parameter ssl must be true or 0; better, use sslmode`];
  if (connection.ssl || connection.isDomainSocket || isLoopback(connection.host ?? '')) return [];
  if (set.ALLOW_PLAINTEXT_POSTGRES === 'true') return [];
  return [
    `${name}: leads to another machine without TLS, so whoever is on the network between can read and change everything; ` +
      'add sslmode=verify-full (and sslrootcert=FILE for an authority of your own), or accept the risk with ALLOW_PLAINTEXT_POSTGRES=true',
  ];
}

function temporalProblems(set: NodeJS.ProcessEnv): string[] {
  if (set.TEMPORAL_ADDRESS === undefined || set.ALLOW_PLAINTEXT_TEMPORAL === 'true') return [];
  const options = temporalOptions(set);
  if (options === undefined || options.tls) return [];
  const url = `grpc://${options.address}`;
  if (URL.canParse(url) && isLoopback(new URL(url).hostname)) return [];
  return [
    'TEMPORAL_ADDRESS: leads to another machine without TLS, so whoever is on the network between can read and start ' +
      'workflows; set TEMPORAL_TLS=true (and TEMPORAL_TLS_SERVER_CA_CERT_PATH for an authority of your own), or accept the risk with ' +
      'ALLOW_PLAINTEXT_TEMPORAL=true',
  ];
}

/** As the SDK reads them; undefined if it can't, which is reported elsewhere. */
function temporalOptions(set: NodeJS.ProcessEnv) {
  try {
    return loadClientConnectConfig({ overrideEnvVars: set as Record<string, string> }).connectionOptions;
  } catch {
    return undefined;
  }
}

function historyProblems(set: NodeJS.ProcessEnv): string[] {
  if (set.NODE_ENV !== 'production' || set.TEMPORAL_ADDRESS === undefined) return [];
  if (set.CODEC_KEYS !== undefined || set.ALLOW_PLAINTEXT_HISTORIES === 'true') return [];
  return [
    'CODEC_KEYS: is required in production, since whoever reads the database of Temporal or its UI can otherwise read what ' +
      'workflows carry; set the keys, or accept the risk with ALLOW_PLAINTEXT_HISTORIES=true',
  ];
}

/** For the codec endpoint, which alone asks there. */
export function jwksProblems(set: NodeJS.ProcessEnv): string[] {
  const url = set.CODEC_JWKS_URL;
  if (url === undefined || !URL.canParse(url) || new URL(url).protocol !== 'http:') return [];
  if (isLoopback(new URL(url).hostname) || set.ALLOW_PLAINTEXT_JWKS === 'true') return [];
  return [
    'CODEC_JWKS_URL: leads to another machine without TLS, so whoever is on the network between can make keys of their own ' +
      'valid, and decrypt; use https, or accept the risk with ALLOW_PLAINTEXT_JWKS=true',
  ];
}
