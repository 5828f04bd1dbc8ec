import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { buildServer, goVersionOf, isGoNewEnough, OLDEST_GO, SERVER_VERSION } from './build-server.ts';
import { binariesIn, type Look, type TemporalSearch } from './temporal-source.ts';

export const cachedBuild: Look = async (search) => {
  const folder = buildFolder(search);
  if (!existsSync(folder)) return `no build in ${folder}`;
  return {
    kind: 'built',
    label: `server ${SERVER_VERSION}, built from source before`,
    binaries: binariesIn(folder),
  };
};

/** Builds the production server and its UI, which takes a few minutes the first time. */
export const freshBuild: Look = async (search) => {
  const version = await goVersionOf(search.searchPath);
  if (version === undefined) return "it can't be built from source: there is no `go` on PATH";
  if (!isGoNewEnough(version)) {
    return `it can't be built from source: Go is ${version}, and ${OLDEST_GO} or newer is needed`;
  }
  try {
    await buildServer({
      folder: buildFolder(search),
      searchPath: search.searchPath,
      onProgress: search.onProgress,
    });
  } catch (error) {
    return `building it from source failed: ${error instanceof Error ? error.message : error}`;
  }
  const binaries = binariesIn(buildFolder(search));
  return { kind: 'built', label: `server ${SERVER_VERSION}, built from source`, binaries };
};

function buildFolder(search: TemporalSearch): string {
  return join(search.cacheFolder, `temporal-server-${SERVER_VERSION}`);
}
