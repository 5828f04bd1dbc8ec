import { z } from 'zod';

/*
 * How a delivery moves. `status` says how the event stands. `workflow` is about the workflow that keeps the time until the next
 * attempt: `none`, the event has none; `untold`, it has yet to be started or notified of the status; `told`, it knows the status.
 * "same" means that the move leaves it as it is. Each statement that moves a delivery names its row.
 *
 * | row       | when                                     | status                                | workflow                       |
 * |-----------|------------------------------------------|---------------------------------------|--------------------------------|
 * | written   | an event is written                      | pending; no_endpoint if there is none | none                           |
 * | attempted | the relay has made an attempt            | pending to delivered, retrying or     | untold; same if none and       |
 * |           |                                          | given_up; pending if it will be       | delivered, or if pending       |
 * |           |                                          | parked; delivered stays               |                                |
 * | notified  | the workflow was started, or notified of | same                                  | told if retrying or given_up,  |
 * |           | the status and the number of attempts    |                                       | otherwise none: it has ended   |
 * | due       | the workflow says that the next attempt  | retrying to pending, if it knows the  | told if pending, otherwise     |
 * |           | is due                                   | number of attempts; otherwise same    | untold                         |
 * | overdue   | the next attempt is due, and no workflow | retrying to pending                   | same                           |
 * |           | says so; or a sandbox clock made it due  |                                       |                                |
 * | requeued  | somebody asks to send it again           | any to pending                        | told if its workflow asks (by  |
 * |           |                                          |                                       | a signal), otherwise same      |
 * | parked    | the relay finds the endpoint disabled or | any but delivered to parked; to       | told to untold if parked,      |
 * |           | deleted                                  | pending if it is enabled again        | otherwise same                 |
 * | unparked  | the endpoint is enabled or created       | parked to pending                     | same                           |
 */

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
