import { newId, readIdTime } from '../../crypto/new-id.ts';
import { type AccountClock, accountTime } from '../../domain/account-clock.ts';
import type { Mode } from '../../domain/mode.ts';
import type { EventType } from '../../resources/event-types.ts';

/**
 * Creates an event, to be written in the same transaction as the change it reports.
 * @param event.clock the account's, which the transaction holds
 * @param event.created defaults to the time in its id
 * @param id defaults to a new one
 * @returns `body`: what every attempt sends (docs/partners/webhooks.md)
 */
export function newEvent(
  event: { type: EventType; mode: Mode; data: object; clock: AccountClock; created?: string },
  id = newId('evt'),
): {
  id: string;
  created: string;
  body: string;
} {
  const { type, mode, data, clock, created = accountTime(clock, readIdTime(id)).toISOString() } = event;
  return { id, created, body: JSON.stringify({ id, type, created, mode, data }) };
}
