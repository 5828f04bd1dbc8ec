import pg from 'pg';
import { ownerUrlOf } from '../../test/support/postgres.ts';

/**
 * Gives the partner the active cards numbered `from` to `to`, as the owner of the database and past the ledger's function: these cards
 * are only read.
 */
export async function seedCards(
  databaseUrl: string,
  partnerId: string,
  from: number,
  to: number,
): Promise<void> {
  const client = new pg.Client(ownerUrlOf(databaseUrl));
  await client.connect();
  try {
    await client.query(
      `WITH made AS (
         INSERT INTO card (id, partner_id, mode, status, external_ref, product_code, network, network_card_id, last4,
           exp_month, exp_year, funding_cents, fees, created_at)
         SELECT 'card_' || lpad(n::text, 26, '0'), $1, 'test', 'active', 'seed-' || n, 'BENCH', 'visa', 'k1/sim', '4242',
           1, 2030, 1000, '[]', now()
         FROM generate_series($2::int, $3::int) n
         RETURNING id
       )
       INSERT INTO ledger.account (id, partner_id, mode, kind, card_id, posted)
       SELECT 'card/' || id, $1, 'test', 'card', id, 0 FROM made`,
      [partnerId, from, to],
    );
    await client.query('VACUUM ANALYZE card');
    await client.query('VACUUM ANALYZE ledger.account');
  } finally {
    await client.end();
  }
}

export const seededCardId = (n: number): string => `card_${String(n).padStart(26, '0')}`;
