/** What one process of a run in parallel works with: servers that nobody else uses (test/run.ts). */
export interface ServersOfRun {
  /** Of the PostgreSQL server, for its owner. The template of test databases exists. */
  postgresUrl: string;
  temporal: { address: string; namespace: string; source: string };
  /** The bundled workflows, as JSON. */
  bundleFile: string;
}

/** Undefined where this process starts servers of its own: `npx mocha FILE`. */
export function serversOfRun(): ServersOfRun | undefined {
  const { TEST_SERVERS, MOCHA_WORKER_ID = '0' } = process.env;
  if (TEST_SERVERS === undefined) return undefined;
  const all: ServersOfRun[] = JSON.parse(TEST_SERVERS);
  // A worker that takes the place of one that died has the next number.
  return all[Number(MOCHA_WORKER_ID) % all.length];
}
