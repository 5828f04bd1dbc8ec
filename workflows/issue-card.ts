import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { IssuanceActivities } from '../cards/activities.ts';
import type { FundingEnd } from '../cards/network-activities.ts';
import { LOCAL_NETWORK_CALL, NETWORK_REQUEST, RETRIED_FOR_EVER, summarized } from './activity-options.ts';
import type { NetworkOperationInput } from './messages.ts';
import { runNetworkOperation } from './network-operation.ts';

const { requestIssuance: firstRequest } = proxyLocalActivities<IssuanceActivities>(
  summarized(LOCAL_NETWORK_CALL, 'hold the money and ask the network for the card'),
);
const { requestIssuance } = proxyActivities<IssuanceActivities>(
  summarized(NETWORK_REQUEST, 'ask the network again'),
);
const { flagIssuanceOverdue } = proxyActivities<IssuanceActivities>(
  summarized(RETRIED_FOR_EVER, 'leave it to an operator, unless there is time left'),
);
const { applyIssuanceResolution } = proxyActivities<IssuanceActivities>(
  summarized(RETRIED_FOR_EVER, "apply the operator's decision"),
);

/** Issues one card. */
export function issueCard(input: NetworkOperationInput): Promise<FundingEnd> {
  return runNetworkOperation(
    {
      firstRequest,
      request: requestIssuance,
      flagOverdue: flagIssuanceOverdue,
      applyResolution: applyIssuanceResolution,
      outcomes: ['issued', 'failed'],
      words: {
        done: 'issued the card',
        noun: 'card',
        alsoToResolve:
          'If the network can\'t be reached to look up the card\'s id, add it: `{"outcome": "issued", "networkCardId": "…"}`, ' +
          'or `--network-card-id` on the command line.',
      },
    },
    input,
  );
}
