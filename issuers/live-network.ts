import { Histogram, type Metric } from 'prom-client';
import { TRANSFERS } from '../domain/transfer.ts';
import type { Config } from '../platform/config/service.ts';
import type { AdapterOptions, CardNetworkAdapter } from './adapter.ts';
import { type CardNetwork, CardNetworkUnavailable, type IngressRoute } from './card-network.ts';
import { increase } from './increase/adapter.ts';
import { lithicNetwork } from './lithic/adapter.ts';
import { askedIfOwn } from './own-network.ts';
import { simulatedNetwork } from './simulated/adapter.ts';

/** Every network that CARD_NETWORK can name. */
const NETWORKS: Record<Exclude<Config['cardNetwork'], 'none'>, CardNetworkAdapter> = {
  simulated: simulatedNetwork,
  increase,
  lithic: lithicNetwork,
};

interface LiveNetworkOptions extends AdapterOptions {
  /** CARD_NETWORK */
  cardNetwork: Config['cardNetwork'];
  /** Where a network that runs in this process posts its messages; null if another process posts them. */
  apiUrl: string | null;
}

interface LiveNetwork {
  /** Null if CARD_NETWORK is none. */
  network: CardNetwork | null;
  /** Durations and outcomes of its requests. */
  metrics: Metric[];
  stop(): Promise<void>;
}

/** Opens the client of the card network that live mode is configured with. */
export async function startLiveNetwork(options: LiveNetworkOptions): Promise<LiveNetwork> {
  const { cardNetwork } = options;
  if (cardNetwork === 'none') return { network: null, metrics: [], stop: async () => {} };
  const { network, stop } = await NETWORKS[cardNetwork].start(options);
  const measured = measureNetwork(network);
  return { ...measured, network: askedIfOwn(measured.network, cardNetwork, options.orm), stop };
}

/** The paths on which that network posts to us; none if CARD_NETWORK is none. */
export function openIngress(cardNetwork: Config['cardNetwork'], options: AdapterOptions): IngressRoute[] {
  return cardNetwork === 'none' ? [] : NETWORKS[cardNetwork].ingress(options);
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
    <Request, Answer extends object>(
      operation: string | ((request: Request) => string),
      ask: (request: Request) => Promise<Answer>,
    ) =>
    async (request: Request): Promise<Answer> => {
      const name = typeof operation === 'string' ? operation : operation(request);
      const end = durations.startTimer({ operation: name });
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
      ...network,
      issueCard: measured('issue_card', (request) => network.issueCard(request)),
      lookUpIssuance: measured('look_up_issuance', (token) => network.lookUpIssuance(token)),
      transfer: measured(
        ({ direction }) => TRANSFERS[direction].operation,
        (request) => network.transfer(request),
      ),
      lookUpTransfer: measured(
        ({ direction }) => `look_up_${direction}`,
        (transfer) => network.lookUpTransfer(transfer),
      ),
      changeCardStatus: measured('change_card_status', (request) => network.changeCardStatus(request)),
      revealCard: measured('reveal_card', (card) => network.revealCard(card)),
      trueUp: measured('true_up', (request) => network.trueUp(request)),
    },
    metrics: [durations],
  };
}
