import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { FundingEnd } from '../cards/network-activities.ts';
import type { TopUpActivities } from '../cards/transfers/top-up-activities.ts';
import { LOCAL_NETWORK_CALL, NETWORK_REQUEST, RETRIED_FOR_EVER, summarized } from './activity-options.ts';
import { type NetworkOperationInput, resolveTopUpSignal } from './messages.ts';
import { runNetworkOperation } from './network-operation.ts';

const { requestTopUp: firstRequest } = proxyLocalActivities<TopUpActivities>(
  summarized(LOCAL_NETWORK_CALL, 'hold the money and ask the network to load the card'),
);
const { requestTopUp } = proxyActivities<TopUpActivities>(
  summarized(NETWORK_REQUEST, 'ask the network again'),
);
const { flagTopUpOverdue } = proxyActivities<TopUpActivities>(
  summarized(RETRIED_FOR_EVER, 'leave it to an operator, unless there is time left'),
);
const { applyTopUpResolution } = proxyActivities<TopUpActivities>(
  summarized(RETRIED_FOR_EVER, "apply the operator's decision"),
);

/** Tops one card up, once. */
export function topUpCard(input: NetworkOperationInput): Promise<FundingEnd> {
  return runNetworkOperation(
    {
      firstRequest,
      request: requestTopUp,
      flagOverdue: flagTopUpOverdue,
      applyResolution: applyTopUpResolution,
      resolve: resolveTopUpSignal,
      outcomes: ['succeeded', 'failed'],
      words: { done: 'loaded the card', noun: 'topup' },
    },
    input,
  );
}
