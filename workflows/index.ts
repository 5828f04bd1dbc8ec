export { changeCardStatus } from './change-card-status.ts';
export { deliverWebhook } from './deliver-webhook.ts';
export { issueCard, topUpCard, withdrawFromCard } from './network-operation.ts';
export { scanChain } from './scan-chain.ts';
export { watchDeposit } from './watch-deposit.ts';
