import { patched, sleep } from '@temporalio/workflow';
import type { FundingEnd } from '../../../cards/network-activities.ts';
import { type DeliveryEnd, deliverWebhook as deliver } from '../../../workflows/deliver-webhook.ts';
import type {
  DeliverWebhookInput,
  NetworkOperationInput,
  WatchDepositInput,
} from '../../../workflows/messages.ts';
import { issueCard as issue } from '../../../workflows/network-operation.ts';
import { type DepositEnd, watchDeposit as watch } from '../../../workflows/watch-deposit.ts';

export { changeCardStatus } from '../../../workflows/change-card-status.ts';
export { topUpCard, withdrawFromCard } from '../../../workflows/network-operation.ts';
export { scanChain } from '../../../workflows/scan-chain.ts';

// What a next release could change. A pinned workflow ends on the version it began on, so its change needs no care: no
// history of today replays with this one.

export async function issueCard(input: NetworkOperationInput): Promise<FundingEnd> {
  await sleep('1ms');
  return issue(input);
}

// The others continue with the new code, so their changes are behind `patched`.

export async function deliverWebhook(input: DeliverWebhookInput): Promise<DeliveryEnd> {
  const end = await deliver(input);
  if (patched(NEXT)) await sleep('1ms');
  return end;
}

export async function watchDeposit(input: WatchDepositInput): Promise<DepositEnd> {
  const end = await watch(input);
  if (patched(NEXT)) await sleep('1ms');
  return end;
}

const NEXT = 'next-release';
