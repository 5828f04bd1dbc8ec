import { Histogram, type Metric } from 'prom-client';
import { type CardNetwork, CardNetworkUnavailable } from '../../domain/card-network.ts';

/** Measures a card network's answers: how long each took, and what it was. */
export function measureNetwork(network: CardNetwork): { network: CardNetwork; metrics: Metric[] } {
  const durations = new Histogram({
    name: 'card_network_request_duration_seconds',
    help: 'Time until the card network answered, by what it was asked and what came of it',
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
