import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { FundingEnd } from '../cards/network-activities.ts';
import type { WithdrawalActivities } from '../cards/transfers/withdrawal-activities.ts';
import { LOCAL_NETWORK_CALL, NETWORK_REQUEST, RETRIED_FOR_EVER, summarized } from './activity-options.ts';
import { type NetworkOperationInput, resolveWithdrawalSignal } from './messages.ts';
import { runNetworkOperation } from './network-operation.ts';

const { requestWithdrawal: firstRequest } = proxyLocalActivities<WithdrawalActivities>(
  summarized(LOCAL_NETWORK_CALL, 'hold the money on the card and ask the network to take it off'),
);
const { requestWithdrawal } = proxyActivities<WithdrawalActivities>(
  summarized(NETWORK_REQUEST, 'ask the network again'),
);
const { flagWithdrawalOverdue } = proxyActivities<WithdrawalActivities>(
  summarized(RETRIED_FOR_EVER, 'leave it to an operator, unless there is time left'),
);
const { applyWithdrawalResolution } = proxyActivities<WithdrawalActivities>(
  summarized(RETRIED_FOR_EVER, "apply the operator's decision"),
);

/** Withdraws money from one card, once. */
export function withdrawFromCard(input: NetworkOperationInput): Promise<FundingEnd> {
  return runNetworkOperation(
    {
      firstRequest,
      request: requestWithdrawal,
      flagOverdue: flagWithdrawalOverdue,
      applyResolution: applyWithdrawalResolution,
      resolve: resolveWithdrawalSignal,
      outcomes: ['succeeded', 'failed'],
      words: { done: 'took the money off the card', noun: 'withdrawal' },
    },
    input,
  );
}
