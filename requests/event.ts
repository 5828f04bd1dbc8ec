import { type RawBuilder, sql } from 'kysely';
import { type AccountClock, accountTime } from '../domain/account-clock.ts';
import type { EventType } from '../domain/event.ts';
import type { Mode, Tenant } from '../domain/mode.ts';
import { newId, readIdTime } from '../platform/crypto/new-id.ts';
import type { Row } from '../platform/db/entities.ts';
import { type Transactor, writeStatement } from '../platform/db/sql.ts';

/** An event's row. Its account is that of the row it is about. */
export interface NewEvent extends Row<'event', 'id' | 'mode' | 'type' | 'body' | 'created_at'> {
  card_id?: string;
  /** The only endpoint that it goes to. */
  only_endpoint_id?: string;
  /** The endpoint that it is about, which does not get it. */
  except_endpoint_id?: string;
}

/**
 * Creates an event, to be written in the same transaction as the change it reports. Its time is that in its
 * id, which lists are filtered by; its body is what every attempt sends (docs/partners/webhooks.md).
 * @param event.clock the account's, which the transaction holds
 * @param id defaults to a new one
 */
export function newEvent(
  event: { type: EventType; mode: Mode; cardId?: string; data: object; clock: AccountClock },
  id = newId('evt'),
): NewEvent {
  const { type, mode, cardId, data, clock } = event;
  const created = accountTime(clock, readIdTime(id)).toISOString();
  const body = JSON.stringify({ id, type, created, mode, data });
  return { id, mode, type, ...(cardId !== undefined && { card_id: cardId }), body, created_at: created };
}

/** Says whose account something is. */
export type AccountColumns = Row<'event', 'partner_id' | 'mode'>;

/**
 * The INSERT of events, which a trigger gives their deliveries.
 * @param events {@link NewEvent}s as JSON
 * @param changed the row that they are about: they are of its account, and there are none without it. If left
 *   out, each event has its `partner_id`
 */
export function insertEvents(events: string, changed?: RawBuilder<AccountColumns>): RawBuilder<never> {
  const account = sql.raw(
    changed === undefined ? 'e.partner_id, e.mode' : 'changed.partner_id, changed.mode',
  );
  const beside = changed === undefined ? sql`` : sql`, ${changed} changed`;
  return sql`
  INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at, only_endpoint_id,
    except_endpoint_id)
  SELECT e.id, ${account}, e.type, e.card_id, e.body, e.created_at, e.only_endpoint_id, e.except_endpoint_id
  FROM json_populate_recordset(NULL::event, ${events}) e${beside}`;
}

/** Writes an event in the caller's transaction. */
export async function writeEvent(
  tx: Transactor,
  { partnerId, mode }: Tenant,
  event: NewEvent,
): Promise<void> {
  await write(tx, { partnerId, mode, events: JSON.stringify([event]) });
}

const write = writeStatement((_, { partnerId, mode, events }: Tenant & { events: string }) =>
  insertEvents(events, sql`(SELECT ${partnerId}::text AS partner_id, ${mode}::text AS mode)`),
);
