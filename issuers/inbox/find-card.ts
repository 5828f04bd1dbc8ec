import { sql } from 'kysely';
import type { CardStatus } from '../../domain/card-status.ts';
import { type Reader, readStatement } from '../../platform/db/sql.ts';
import type { WhyWaiting } from './tables.ts';

/** A live card that the network names. */
export interface NetworkCardOwner {
  cardId: string;
  partnerId: string;
  mode: 'live';
  status: CardStatus;
}

/** Our card with this id at the live network, and its account; null if we have none. */
export async function findNetworkCard(em: Reader, networkCardId: string): Promise<NetworkCardOwner | null> {
  const [row] = await liveCardWith(em, { networkCardId });
  return row === undefined ? null : { ...row, mode: 'live' };
}

const liveCardWith = readStatement(
  (db, { networkCardId }: { networkCardId: string }) =>
    db
      .selectFrom('card')
      .select(['id as cardId', 'partner_id as partnerId', 'status'])
      .where('network_card_id', '=', networkCardId)
      // A literal, so that the planner can use the partial index.
      .where('mode', '=', sql.lit<'live'>('live')),
  { acrossTenants: 'network' },
);

/**
 * The card that a payment is on: the one that it was booked on before, which may be on a person's word, or the
 * one with the network's id.
 * @returns with why it can't take the payment by itself; null if it can
 */
export async function findPaymentCard(
  em: Reader,
  paymentId: string,
  networkCardId: string | null,
): Promise<(NetworkCardOwner & { unusable: WhyWaiting | null }) | null> {
  const [row] = await paymentCard(em, { paymentId, networkCardId });
  if (row === undefined) return null;
  const { isBooked, ...card } = row;
  // A person has to say first that the money on a failed card is to be charged to the prepaid balance.
  const failed = card.status === 'failed' && !isBooked ? 'card_failed' : null;
  return { ...card, mode: 'live', unusable: card.status === 'funding_pending' ? 'card_not_issued' : failed };
}

const paymentCard = readStatement(
  (_, { paymentId, networkCardId }: { paymentId: string; networkCardId: string | null }) => sql<{
    cardId: string;
    partnerId: string;
    status: CardStatus;
    isBooked: boolean;
  }>`
    SELECT c.id AS "cardId", c.partner_id AS "partnerId", c.status, y.card_id IS NOT NULL AS "isBooked"
    FROM (VALUES (1)) one LEFT JOIN payment y ON y.mode = 'live' AND y.payment_id = ${paymentId}
    JOIN card c ON c.id = coalesce(y.card_id,
      (SELECT k.id FROM card k WHERE k.network_card_id = ${networkCardId} AND k.mode = 'live'))`,
  { acrossTenants: 'network' },
);
