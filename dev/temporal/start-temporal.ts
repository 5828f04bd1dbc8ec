import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { startBuilt } from './built/start-built.ts';
import { startCli } from './cli/start-cli.ts';
import { useExisting } from './existing/use-existing.ts';
import { findTemporalSource } from './find-temporal-source.ts';
import type { RunningTemporal, TemporalOptions } from './running-temporal.ts';

/**
 * Brings up a Temporal server that has the namespace and the search attributes, from the first source that is there
 * (design/runtime.md).
 */
export async function startTemporal(options: TemporalOptions): Promise<RunningTemporal> {
  const source = options.source ?? (await findTemporalSource(options));
  if (source.kind === 'existing') return useExisting(source, options);
  await mkdir(join(options.dataDir, 'temporal'), { recursive: true, mode: 0o700 });
  await mkdir(join(options.dataDir, 'logs'), { recursive: true, mode: 0o700 });
  return source.kind === 'cli' ? startCli(source, options) : startBuilt(source, options);
}
