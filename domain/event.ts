import { z } from 'zod';

/** The types of events (docs/partners/webhooks.md), and `ping`, which POST /webhook-endpoint/test sends. */
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
  .meta({ id: 'EventType', description: 'The kind of event.' });
export type EventType = z.infer<typeof EventType>;

/** The delivery status of an event (docs/partners/webhooks.md). */
export const DeliveryStatus = z
  .enum(['pending', 'delivered', 'retrying', 'given_up', 'parked', 'no_endpoint'])
  .meta({
    id: 'DeliveryStatus',
    description:
      '`pending`: about to be sent. `delivered`: you answered 2xx. `retrying`: the last attempt failed, and we will make ' +
      'another. `given_up`: every attempt failed; we send the event again only if you resend it. `parked`: the endpoint is ' +
      'disabled or deleted; we send the event when you enable the endpoint or create one. `no_endpoint`: you had no endpoint ' +
      'when the event was created; we send it only if you resend it.',
  });
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

/** How long events are kept, in days (docs/partners/webhooks.md). */
export const EVENTS_KEPT_DAYS = 30;
