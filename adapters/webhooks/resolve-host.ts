import { Resolver } from 'node:dns/promises';

/** All addresses of a host name; rejects where there are none. */
export type ResolveHost = (hostName: string) => Promise<string[]>;

/**
 * Asks the machine's DNS servers, IPv4 first. Not `dns.lookup`: that occupies one of the process's four file and DNS
 * threads until the name's server answers, so a few names whose servers never do would stop everybody's look-ups.
 * @param servers address:port of other DNS servers
 */
export function createHostResolver(servers?: readonly string[]): ResolveHost {
  const resolver = new Resolver({ timeout: 2_000, maxTimeout: 2_000, tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  return async (hostName) => {
    const answers = await Promise.allSettled([resolver.resolve4(hostName), resolver.resolve6(hostName)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length > 0) return addresses;
    const reasons = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
    throw new AggregateError(reasons, `${hostName} has no address; check the name and this machine's DNS`);
  };
}
