import { cacheFolder } from '../cache-folder.ts';
import { wheelFor } from '../temporal/cli/download-cli.ts';
import type { TemporalSearch } from '../temporal/temporal-source.ts';
import type { Settings } from './settings.ts';

/** Where the local stack and the tests look for a Temporal server. */
export function temporalSearch(
  asked: Partial<Pick<Settings, 'TEMPORAL_ADDRESS' | 'TEMPORAL_CLI' | 'TEMPORAL_SERVER'>>,
  onProgress: (line: string) => void,
): TemporalSearch {
  return {
    temporalAddress: asked.TEMPORAL_ADDRESS,
    temporalCli: asked.TEMPORAL_CLI,
    production: asked.TEMPORAL_SERVER === 'production',
    searchPath: process.env.PATH ?? '',
    cacheFolder: cacheFolder(process.env),
    cliWheel: wheelFor(process.platform, process.arch),
    onProgress,
  };
}
