export { issueCard } from './issue-card.ts';
