import type { CardNetworkAdapter } from '../adapter.ts';
import { createSimulatedClient } from './client.ts';
import { simulatedNetworkCredentials, simulatedNetworkSecrets } from './credentials.ts';
import { simulatedIngress } from './ingress.ts';
import { startSimulatedNetwork } from './server/start-server.ts';
import { CALLBACKS_PATH } from './wire.ts';

/** The simulated network runs in this process, behind HTTP like a real one. */
export const simulatedNetwork: CardNetworkAdapter = {
  start: async ({ config, orm, ring, logger, apiUrl }) => {
    const secrets = () => simulatedNetworkSecrets(ring);
    const callbackUrl = apiUrl === null ? null : apiUrl + CALLBACKS_PATH;
    const server = await startSimulatedNetwork({ orm, callbackUrl, secrets, logger });
    const { bearerToken } = simulatedNetworkCredentials(secrets()[0]);
    const network = createSimulatedClient({
      url: server.url,
      bearerToken,
      keyLifetimeMs: config.networkKeyLifetimeMs,
    });
    return {
      network,
      stop: async () => {
        await network.close();
        await server.stop();
      },
    };
  },
  ingress: ({ ring }) => simulatedIngress(ring),
};
