import type { ServerBinaries } from './built/server-binaries.ts';

/** Where a Temporal server comes from; `label` says it to a person. */
export type TemporalSource =
  | { kind: 'existing'; label: string; address: string }
  | { kind: 'cli'; label: string; path: string }
  | { kind: 'built'; label: string; binaries: ServerBinaries };
