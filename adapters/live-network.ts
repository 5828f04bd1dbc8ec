import type { Logger } from 'pino';
import type { Metric } from 'prom-client';
import { simulatedNetworkSecrets } from '../crypto/derived-keys.ts';
import type { KeyRing } from '../crypto/key-ring.ts';
import type { Orm } from '../db/orm.ts';
import type { CardNetwork } from '../domain/card-network.ts';
import { createHttpCardNetwork } from './card-network/http-card-network.ts';
import { measureNetwork } from './card-network/measure-network.ts';
import { simulatedNetworkCredentials } from './simulated-network/credentials.ts';
import { startSimulatedNetwork } from './simulated-network/start-simulated-network.ts';

export interface LiveNetworkOptions {
  /** CARD_NETWORK */
  cardNetwork: 'none' | 'simulated';
  /** Where the simulated network posts its callbacks; null if another process sends them. */
  callbackUrl: string | null;
  orm: Orm;
  ring: KeyRing;
  logger: Logger;
}

export interface LiveNetwork {
  /** Null if CARD_NETWORK is none. */
  network: CardNetwork | null;
  /** What its requests came to. */
  metrics: Metric[];
  stop(): Promise<void>;
}

/** Starts the network that live mode is configured with. The simulated one runs in this process, behind HTTP like a real one. */
export async function startLiveNetwork(options: LiveNetworkOptions): Promise<LiveNetwork> {
  const { cardNetwork, callbackUrl, orm, ring, logger } = options;
  if (cardNetwork === 'none') return { network: null, metrics: [], stop: async () => {} };
  const secrets = simulatedNetworkSecrets(ring);
  const server = await startSimulatedNetwork({ orm, callbackUrl, secrets, logger });
  const network = createHttpCardNetwork({
    url: server.url,
    bearerToken: simulatedNetworkCredentials(secrets[0]).bearerToken,
  });
  return {
    ...measureNetwork(network),
    stop: async () => {
      await network.close();
      await server.stop();
    },
  };
}
