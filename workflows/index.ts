export { changeCardStatus } from './change-card-status.ts';
export { deliverWebhook } from './deliver-webhook.ts';
export { issueCard } from './issue-card.ts';
export { scanChain } from './scan-chain.ts';
export { topUpCard } from './top-up-card.ts';
export { watchDeposit } from './watch-deposit.ts';
export { withdrawFromCard } from './withdraw-from-card.ts';
