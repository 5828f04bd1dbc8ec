import { createSimulatedClient } from '../../../issuers/simulated/client.ts';
import { simulatedNetworkCredentials } from '../../../issuers/simulated/credentials.ts';
import { query } from '../../../platform/db/sql.ts';
import { startTestNetwork } from '../../support/adapters/simulated-network.ts';
import { startUnrulyProxy } from '../../support/adapters/unruly-proxy.ts';
import { describeConformance } from '../conformance.ts';

describeConformance('the simulated network', async ({ keyLifetimeMs }) => {
  const { url, secret, orm, close } = await startTestNetwork();
  const proxy = await startUnrulyProxy(url);
  const { bearerToken } = simulatedNetworkCredentials(secret);
  const network = createSimulatedClient({ url: proxy.url, bearerToken, keyLifetimeMs });
  const read = async (text: string, values: unknown[]) =>
    Number((await query<{ n: string }>(orm.em.fork(), text, values))[0]?.n ?? 0);
  return {
    network,
    proxy,
    // It has no limit.
    pausesMs: null,
    // A block gives the card's money back by itself.
    returnedFrom: async () => null,
    cardsOf: (token) => read('SELECT count(*) AS n FROM simulated_network.card WHERE token = $1', [token]),
    movedTo: (networkCardId) =>
      read(
        `SELECT coalesce(sum(CASE kind WHEN 'card.topup' THEN 1 ELSE -1 END * (request ->> 'amountCents')::int), 0) AS n
         FROM simulated_network.operation
         WHERE kind IN ('card.topup', 'card.withdrawal') AND request ->> 'networkCardId' = $1 AND outcome = 'succeeded'`,
        [networkCardId],
      ),
    // Its faults go by the amount (docs/partners/testing.md).
    loseNextAnswer: () => 5_044,
    refuseNext: () => 5_042,
    stop: async () => {
      await network.close();
      await proxy.close();
      await close();
    },
  };
});
