export { changeCardStatus } from './change-card-status.ts';
export { deliverWebhook } from './deliver-webhook.ts';
export { issueCard } from './issue-card.ts';
export { scanChain } from './scan-chain.ts';
export { topUpCard, withdrawFromCard } from './transfer.ts';
export { watchDeposit } from './watch-deposit.ts';
