import pg from 'pg';
import { lowestId } from '../../crypto/new-id.ts';
import { ownerUrlOf } from '../../test/support/postgres.ts';

/** Gives the partner so many delivered events of an hour ago, in test mode, as the owner of the database. */
export async function seedEvents(databaseUrl: string, partnerId: string, count: number): Promise<void> {
  const at = new Date(Date.now() - 3_600_000);
  const client = new pg.Client(ownerUrlOf(databaseUrl));
  await client.connect();
  try {
    // In one transaction, or a relay would send them before they are said to have been delivered.
    await client.query('BEGIN');
    await client.query(
      `INSERT INTO event (id, partner_id, mode, type, body, created_at)
       SELECT $2 || lpad(n::text, 16, '0'), $1, 'test', 'card.transaction.created',
         json_build_object('id', $2 || lpad(n::text, 16, '0'), 'type', 'card.transaction.created',
           'created', '2026-01-01T00:00:00.000Z', 'mode', 'test', 'data', json_build_object('filler', repeat('x', 500)))::text, $3
       FROM generate_series(1, $4::int) n`,
      [partnerId, lowestId('evt', at).slice(0, 14), at, count],
    );
    await client.query(`UPDATE delivery SET status = 'delivered' WHERE partner_id = $1`, [partnerId]);
    await client.query('COMMIT');
    await client.query('VACUUM ANALYZE event, delivery');
  } finally {
    await client.end();
  }
}
