import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { TransferActivities } from '../cards/activities.ts';
import type { FundingEnd } from '../cards/network-activities.ts';
import type { TransferDirection } from '../domain/transfer.ts';
import { LOCAL_NETWORK_CALL, NETWORK_REQUEST, RETRIED_FOR_EVER, summarized } from './activity-options.ts';
import type { NetworkOperationInput } from './messages.ts';
import { runNetworkOperation } from './network-operation.ts';

const WORDS = {
  topup: { first: 'hold the money and ask the network to load the card', done: 'loaded the card' },
  withdrawal: {
    first: 'hold the money on the card and ask the network to take it off',
    done: 'took the money off the card',
  },
} as const;

const { requestTransfer } = proxyActivities<TransferActivities>(
  summarized(NETWORK_REQUEST, 'ask the network again'),
);
const { flagTransferOverdue } = proxyActivities<TransferActivities>(
  summarized(RETRIED_FOR_EVER, 'leave it to an operator, unless there is time left'),
);
const { applyTransferResolution } = proxyActivities<TransferActivities>(
  summarized(RETRIED_FOR_EVER, "apply the operator's decision"),
);

/** Tops one card up, once. */
export const topUpCard = (input: NetworkOperationInput): Promise<FundingEnd> => runTransfer('topup', input);

/** Withdraws money from one card, once. */
export const withdrawFromCard = (input: NetworkOperationInput): Promise<FundingEnd> =>
  runTransfer('withdrawal', input);

function runTransfer(direction: TransferDirection, input: NetworkOperationInput): Promise<FundingEnd> {
  const { first, done } = WORDS[direction];
  const locally = proxyLocalActivities<TransferActivities>(summarized(LOCAL_NETWORK_CALL, first));
  return runNetworkOperation(
    {
      firstRequest: (claimId) => locally.requestTransfer(claimId, direction),
      request: (claimId, isHeld, nextAskMs) => requestTransfer(claimId, direction, isHeld, nextAskMs),
      flagOverdue: (claimId) => flagTransferOverdue(claimId, direction),
      applyResolution: (claimId, decision) => applyTransferResolution(claimId, direction, decision),
      outcomes: ['succeeded', 'failed'],
      words: { done, noun: direction },
    },
    input,
  );
}
