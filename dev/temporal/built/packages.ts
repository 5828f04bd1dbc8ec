import type { ServerBinaries } from './server-binaries.ts';

/** 1.32.2 wants a newer Go than some machines have. */
export const SERVER_VERSION = '1.32.0';

export interface GoPackage {
  /** Which of the binaries it becomes. */
  binary: keyof ServerBinaries;
  path: string;
  version: string;
}

/** What is built, the longest first (design/runtime.md). */
export const PACKAGES: readonly GoPackage[] = [
  { binary: 'server', path: 'go.temporal.io/server/cmd/server', version: `v${SERVER_VERSION}` },
  { binary: 'sqlTool', path: 'go.temporal.io/server/cmd/tools/sql', version: `v${SERVER_VERSION}` },
  { binary: 'ui', path: 'github.com/temporalio/ui-server/v2/cmd/server', version: 'v2.54.1' },
];
