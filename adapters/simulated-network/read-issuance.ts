import { query, type Sql } from '../../db/sql.ts';
import type { LookUpAnswer, NetworkCard } from '../card-network/card-network.ts';

interface Row {
  status: 'accepted' | 'succeeded' | 'declined' | 'failed';
  network_card_id: string | null;
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
      return row.network_card_id === null
        ? { status: 'accepted' }
        : { status: 'accepted', card: cardOf(row) };
    case 'declined':
      return { status: 'declined', reason: 'declined_by_network' };
    case 'failed':
      return { status: 'failed', reason: 'failed_at_network' };
    case 'succeeded':
      return { status: 'issued', ...cardOf(row) };
  }
}

function cardOf({ network_card_id, last4, exp_month, exp_year }: Row): NetworkCard {
  if (network_card_id === null) throw new Error('the simulated network has issued a card it does not have');
  return { networkCardId: network_card_id, last4, expMonth: exp_month, expYear: exp_year };
}
