import { z } from 'zod';

/** The kinds of events (partner-api.md, "Event kinds"), and `ping`, which POST /webhook-endpoint/test sends. */
export const EventType = z
  .enum([
    'card.issued',
    'card.issue_failed',
    'topup.succeeded',
    'topup.failed',
    'card.transaction.created',
    'card.frozen',
    'card.unfrozen',
    'card.blocked',
    'deposit.confirmed',
    'ping',
  ])
  .meta({ id: 'EventType', description: 'What happened.' });
export type EventType = z.infer<typeof EventType>;
