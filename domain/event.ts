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

/** How far an event got (decisions.md, "Event"). */
export const DeliveryStatus = z
  .enum(['pending', 'delivered', 'retrying', 'given_up', 'parked', 'no_endpoint'])
  .meta({
    id: 'DeliveryStatus',
    description:
      '`pending`: about to be sent. `delivered`: you answered 2xx. `retrying`: the last attempt failed, and another one ' +
      'follows. `given_up`: every attempt failed; resend the event if you want it. `parked`: the endpoint is disabled or ' +
      'deleted; the event is sent when there is one again. `no_endpoint`: there was no endpoint when the event was ' +
      'created; resend the event if you want it.',
  });
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

/** How long events are kept, in days (decisions.md, "Event"). */
export const EVENTS_KEPT_DAYS = 30;
