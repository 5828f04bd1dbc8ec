import { newId, timeOf } from '../../crypto/new-id.ts';
import type { EventType } from '../../domain/event.ts';
import type { Mode } from '../../domain/mode.ts';

/**
 * An event to be written with what it tells of.
 * @param event.created left out: when its id was made
 * @param id left out: a new one
 * @returns `body`: what its webhook sends, every time (partner-api.md, "Webhook event envelope")
 */
export function newEvent(
  event: { type: EventType; mode: Mode; data: object; created?: string },
  id = newId('evt'),
): {
  id: string;
  created: string;
  body: string;
} {
  const { type, mode, data, created = timeOf(id).toISOString() } = event;
  return { id, created, body: JSON.stringify({ id, type, created, mode, data }) };
}
