import pg from 'pg';
import { lowestId, newId } from '../../../crypto/new-id.ts';
import type { DeliveryStatus, EventType } from '../../../domain/event.ts';
import type { Mode } from '../../../domain/mode.ts';
import { ownerUrlOf } from '../postgres.ts';
import type { TestPartner, TestStack } from '../stack.ts';

export interface SeededEvent {
  type?: EventType;
  mode?: Mode;
  ageMs?: number;
  status?: DeliveryStatus;
}

/**
 * Events about no card, as if they had been written that long ago and got that far.
 * @returns their ids, in the order given
 */
export async function seedEvents(
  stack: TestStack,
  partner: Pick<TestPartner, 'id'>,
  events: SeededEvent[],
): Promise<string[]> {
  const rows = events.map(({ type = 'card.issued', mode = 'test', ageMs = 0, status = 'delivered' }) => {
    const at = new Date(Date.now() - ageMs);
    const created = at.toISOString();
    const id = lowestId('evt', at).slice(0, 14) + newId('evt').slice(14);
    return {
      id,
      type,
      mode,
      status,
      created,
      body: JSON.stringify({ id, type, created, mode, data: { n: 1 } }),
    };
  });
  const json = JSON.stringify(rows);
  const record = 'r (id text, type text, mode text, status text, created timestamptz, body text)';
  const owner = new pg.Client(ownerUrlOf(stack.config.databaseUrl));
  await owner.connect();
  try {
    // In one transaction, or a relay would send them before they are said to have got anywhere.
    await owner.query('BEGIN');
    await owner.query(
      `INSERT INTO event (id, partner_id, mode, type, body, created_at)
       SELECT id, $2, mode, type, body, created FROM json_to_recordset($1) AS ${record}`,
      [json, partner.id],
    );
    await owner.query(
      `UPDATE delivery d SET status = r.status FROM json_to_recordset($1) AS ${record} WHERE d.event_id = r.id`,
      [json],
    );
    await owner.query('COMMIT');
  } finally {
    await owner.end();
  }
  return rows.map((row) => row.id);
}
