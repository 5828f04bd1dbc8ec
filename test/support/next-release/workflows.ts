import { patched, sleep } from '@temporalio/workflow';
import { deliverWebhook as deliver } from '../../../workflows/deliver-webhook.ts';
import { issueCard as issue } from '../../../workflows/issue-card.ts';
import type {
  DeliverWebhookInput,
  NetworkOperationInput,
  WatchDepositInput,
} from '../../../workflows/messages.ts';
import { watchDeposit as watch } from '../../../workflows/watch-deposit.ts';

export { changeCardStatus } from '../../../workflows/change-card-status.ts';
export { scanChain } from '../../../workflows/scan-chain.ts';
export { topUpCard } from '../../../workflows/top-up-card.ts';

// What a next release could change. A pinned workflow ends on the version it began on, so its change needs no care: no
// history of today replays with this one.

export async function issueCard(input: NetworkOperationInput): Promise<void> {
  await sleep('1ms');
  return issue(input);
}

// The others go on with the new code, so their changes are behind `patched`.

export async function deliverWebhook(input: DeliverWebhookInput): Promise<void> {
  await deliver(input);
  if (patched(NEXT)) await sleep('1ms');
}

export async function watchDeposit(input: WatchDepositInput): Promise<void> {
  await watch(input);
  if (patched(NEXT)) await sleep('1ms');
}

const NEXT = 'next-release';
