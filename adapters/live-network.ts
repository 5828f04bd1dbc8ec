import type { Logger } from 'pino';
import { Histogram, type Metric } from 'prom-client';
import { simulatedNetworkSecrets } from '../crypto/derived-keys.ts';
import type { KeyRing } from '../crypto/key-ring.ts';
import type { Orm } from '../db/orm.ts';
import { type CardNetwork, CardNetworkUnavailable } from '../domain/card-network.ts';
import { createHttpCardNetwork } from './card-network/http-card-network.ts';
import { simulatedNetworkCredentials } from './simulated-network/credentials.ts';
import { startSimulatedNetwork } from './simulated-network/start-simulated-network.ts';

interface LiveNetworkOptions {
  /** CARD_NETWORK */
  cardNetwork: 'none' | 'simulated';
  /** Where the simulated network posts its callbacks; null if another process sends them. */
  callbackUrl: string | null;
  orm: Orm;
  ring: KeyRing;
  logger: Logger;
}

interface LiveNetwork {
  /** Null if CARD_NETWORK is none. */
  network: CardNetwork | null;
  /** Durations and outcomes of its requests. */
  metrics: Metric[];
  stop(): Promise<void>;
}

/** Starts the card network configured for live mode. The simulated one runs in this process, behind HTTP like a real one. */
export async function startLiveNetwork(options: LiveNetworkOptions): Promise<LiveNetwork> {
  const { cardNetwork, callbackUrl, orm, ring, logger } = options;
  if (cardNetwork === 'none') return { network: null, metrics: [], stop: async () => {} };
  const secrets = () => simulatedNetworkSecrets(ring);
  const server = await startSimulatedNetwork({ orm, callbackUrl, secrets, logger });
  const network = createHttpCardNetwork({
    url: server.url,
    bearerToken: simulatedNetworkCredentials(secrets()[0]).bearerToken,
  });
  return {
    ...measureNetwork(network),
    stop: async () => {
      await network.close();
      await server.stop();
    },
  };
}

/** Measures a card network's responses: how long each one took, and its outcome. */
function measureNetwork(network: CardNetwork): { network: CardNetwork; metrics: Metric[] } {
  const durations = new Histogram({
    name: 'card_network_request_duration_seconds',
    help: 'Time until the card network responded, by operation and outcome',
    labelNames: ['operation', 'outcome'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [],
  });

  const measured =
    <Request, Answer extends object>(operation: string, ask: (request: Request) => Promise<Answer>) =>
    async (request: Request): Promise<Answer> => {
      const end = durations.startTimer({ operation });
      try {
        const answer = await ask(request);
        end({ outcome: 'status' in answer ? String(answer.status) : 'answered' });
        return answer;
      } catch (error) {
        end({ outcome: error instanceof CardNetworkUnavailable ? 'unavailable' : 'error' });
        throw error;
      }
    };

  return {
    network: {
      issueCard: measured('issue_card', (request) => network.issueCard(request)),
      lookUpIssuance: measured('look_up_issuance', (token) => network.lookUpIssuance(token)),
      topUpCard: measured('top_up_card', (request) => network.topUpCard(request)),
      lookUpTopUp: measured('look_up_topup', (token) => network.lookUpTopUp(token)),
      changeCardStatus: measured('change_card_status', (request) => network.changeCardStatus(request)),
      revealCard: measured('reveal_card', (card) => network.revealCard(card)),
    },
    metrics: [durations],
  };
}
