import type { Logger } from 'pino';
import type { CardNetwork } from '../adapters/card-network/card-network.ts';
import { createHttpCardNetwork } from '../adapters/card-network/http-card-network.ts';
import { simulatedNetworkCredentials } from '../adapters/simulated-network/credentials.ts';
import { startSimulatedNetwork } from '../adapters/simulated-network/start-simulated-network.ts';
import type { Config } from '../config.ts';
import { simulatedNetworkSecret } from '../db/derived-keys.ts';
import type { KeyRing } from '../db/key-ring.ts';
import type { Orm } from '../db/orm.ts';

export interface LiveNetwork {
  /** Null where CARD_NETWORK is none. */
  network: CardNetwork | null;
  stop(): Promise<void>;
}

/** Live mode's network by configuration. The simulated one runs in this process, behind HTTP like a real one. */
export async function startLiveNetwork(
  config: Config,
  orm: Orm,
  ring: KeyRing,
  logger: Logger,
): Promise<LiveNetwork> {
  if (config.cardNetwork === 'none') return { network: null, stop: async () => {} };
  const secret = simulatedNetworkSecret(ring);
  const callbackUrl = `http://${config.host}:${config.port}/network/callbacks`;
  const server = await startSimulatedNetwork({ orm, callbackUrl, secret, logger });
  const network = createHttpCardNetwork({
    url: server.url,
    bearerToken: simulatedNetworkCredentials(secret).bearerToken,
  });
  return {
    network,
    stop: async () => {
      await network.close();
      await server.stop();
    },
  };
}
