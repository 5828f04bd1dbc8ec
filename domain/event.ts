import { closest, distance } from 'fastest-levenshtein';
import { z } from 'zod';

/*
 * How a delivery moves: an event's row for one endpoint. `status` says how it stands. `workflow` is about the workflow that keeps
 * the time until the next attempt: `none`, it has none; `untold`, it has yet to be started or notified of the status; `told`, it
 * knows the status. "same" means that the move leaves it as it is. Each statement that moves a delivery names its row.
 *
 * | row       | when                                     | status                                | workflow                       |
 * |-----------|------------------------------------------|---------------------------------------|--------------------------------|
 * | written   | an event is written: one for each        | pending; no_endpoint if no endpoint   | none                           |
 * |           | endpoint that wants it                   | does, with an empty endpoint_id       |                                |
 * | attempted | the relay has made an attempt            | pending to delivered, retrying or     | untold; same if none and       |
 * |           |                                          | given_up; pending if it will be       | delivered, or if pending       |
 * |           |                                          | parked; delivered stays               |                                |
 * | notified  | the workflow was started, or notified of | same                                  | told if retrying or given_up,  |
 * |           | the status and the number of attempts    |                                       | otherwise none: it has ended   |
 * | due       | the workflow says that the next attempt  | retrying to pending, if it knows the  | told if pending, otherwise     |
 * |           | is due                                   | number of attempts; otherwise same    | untold                         |
 * | overdue   | the next attempt is due, and no workflow | retrying to pending                   | same                           |
 * |           | says so; or a sandbox clock made it due  |                                       |                                |
 * | requeued  | somebody asks to send it again, or to an | any to pending; a new one if the      | told if its workflow asks (by  |
 * |           | endpoint that it was not for             | endpoint had none                     | a signal), otherwise same      |
 * | replayed  | a partner replays it                     | any but pending to pending, or parked | told to untold if parked,      |
 * |           |                                          | if the endpoint is disabled; a new    | otherwise same                 |
 * |           |                                          | one if the endpoint had none          |                                |
 * | parked    | the relay finds the endpoint disabled or | any but delivered to parked, given_up | told to untold if parked or    |
 * |           | deleted                                  | if deleted, pending if enabled again  | given up, otherwise same       |
 * | lost      | the relay finds that the event is no     | pending to given_up                   | told to untold                 |
 * |           | longer kept                              |                                       |                                |
 * | unparked  | a worker finds it parked for an endpoint | parked to pending                     | same                           |
 * |           | that is enabled                          |                                       |                                |
 * | deleted   | a worker finds that the endpoint was     | pending, retrying, parked to given_up | told to untold                 |
 * |           | deleted                                  |                                       |                                |
 */

/** The delivery status of an event (docs/partners/webhooks.md). */
export const DeliveryStatus = z
  .enum(['pending', 'delivered', 'retrying', 'given_up', 'parked', 'no_endpoint'])
  .meta({
    id: 'DeliveryStatus',
    description:
      '`pending`: about to be sent. `delivered`: you answered 2xx. `retrying`: the last attempt failed, and we will make ' +
      'another. `given_up`: every attempt failed, or the endpoint was deleted; we send the event again only if you resend it. ' +
      '`parked`: the endpoint is disabled; we send the event when you enable it. `no_endpoint`: no endpoint wanted the event ' +
      'when it was created; we send it only if you resend it.',
  });
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

/** How long events are kept, in days (docs/partners/webhooks.md). */
export const EVENTS_KEPT_DAYS = 30;

/**
 * How many webhook endpoints an account can have in a mode, disabled ones included
 * (docs/partners/webhooks.md).
 */
export const MAX_ENDPOINTS = 5;

/** Every type of event. webhooks/event-types-resource.ts says what is in them. */
export const EventType = z
  .enum(
    [
      'card.issued',
      'card.issue_failed',
      'card.updated',
      'card.frozen',
      'card.unfrozen',
      'card.blocked',
      'topup.succeeded',
      'topup.failed',
      'withdrawal.succeeded',
      'withdrawal.failed',
      'card.transaction.created',
      'card.authorization.created',
      'card.authorization.updated',
      'deposit.confirmed',
      'deposit.needs_review',
      'deposit.expired',
      'webhook_endpoint.failing',
      'webhook_endpoint.disabled',
      'api_key.expiring',
      'balance.low',
      'balance.recovered',
      'ping',
    ],
    { error: suggestType },
  )
  .meta({ id: 'EventType', description: 'The kind of event.' });
export type EventType = z.infer<typeof EventType>;

/** Undefined, and so the list of all types, if more than a third of the nearest one would be wrong. */
function suggestType({ input }: z.core.$ZodRawIssue): string | undefined {
  if (typeof input !== 'string' || input.length > MAX_TYPE_LENGTH) return undefined;
  const nearest = closest(input, EventType.options);
  if (distance(input, nearest) > input.length / 3) return undefined;
  return `must be an event type: did you mean ${nearest}?`;
}

/** Longer text is near none, and would take long to compare. */
const MAX_TYPE_LENGTH = 100;
