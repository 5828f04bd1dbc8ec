import { query, type Sql } from '../../db/sql.ts';
import type { LookUpAnswer } from '../card-network/card-network.ts';

interface Row {
  status: 'accepted' | 'succeeded' | 'declined' | 'failed';
  network_card_id: string;
  last4: string;
  exp_month: number;
  exp_year: number;
}

/** The state of an issuance by the database's clock, so that it is the same in every process and after every crash. */
export async function readIssuance(em: Sql, token: string): Promise<LookUpAnswer> {
  const [row] = await query<Row>(
    em,
    `SELECT CASE WHEN o.completes_at <= clock_timestamp() THEN o.outcome ELSE 'accepted' END AS status,
            c.network_card_id, c.last4, c.exp_month, c.exp_year
       FROM simulated_network.operation o LEFT JOIN simulated_network.card c USING (token)
      WHERE token = $1 AND o.kind = 'card.issuance' AND o.taken_at IS NOT NULL`,
    [token],
  );
  switch (row?.status) {
    case undefined:
      return { status: 'unknown' };
    case 'accepted':
      return { status: 'accepted' };
    case 'declined':
      return { status: 'declined', reason: 'declined_by_network' };
    case 'failed':
      return { status: 'failed', reason: 'failed_at_network' };
    case 'succeeded':
      return {
        status: 'issued',
        networkCardId: row.network_card_id,
        last4: row.last4,
        expMonth: row.exp_month,
        expYear: row.exp_year,
      };
  }
}
