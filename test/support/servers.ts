export interface Servers {
  postgresUrl: string;
  temporal: { address: string; namespace: string; source: string };
  bundleFile: string;
}

/** The servers of this run. @throws Error if it has none, as test/unit */
export function testServers(): Servers {
  const { TEST_SERVERS } = process.env;
  if (TEST_SERVERS === undefined)
    throw new Error('this run has no servers: tests that need them are not in test/unit');
  return JSON.parse(TEST_SERVERS);
}
