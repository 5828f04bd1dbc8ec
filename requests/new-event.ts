import { type AccountClock, accountTime } from '../domain/account-clock.ts';
import type { EventType } from '../domain/event.ts';
import type { Mode } from '../domain/mode.ts';
import { newId, readIdTime } from '../platform/crypto/new-id.ts';

/**
 * Creates an event, to be written in the same transaction as the change it reports.
 * @param event.clock the account's, which the transaction holds
 * @param id defaults to a new one
 * @returns `created`: the time in its id, which lists are filtered by; `body`: what every attempt sends (docs/partners/webhooks.md)
 */
export function newEvent(
  event: { type: EventType; mode: Mode; data: object; clock: AccountClock },
  id = newId('evt'),
): {
  id: string;
  created: string;
  body: string;
} {
  const { type, mode, data, clock } = event;
  const created = accountTime(clock, readIdTime(id)).toISOString();
  return { id, created, body: JSON.stringify({ id, type, created, mode, data }) };
}
