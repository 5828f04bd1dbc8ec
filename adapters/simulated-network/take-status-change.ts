import { query, type Sql } from '../../db/sql.ts';
import type { StatusChangeAnswer, StatusChangeRequest } from '../card-network/card-network.ts';
import { lockNetworkCard } from './lock-network-card.ts';
import { DECLINED, SUCCESS } from './outcomes.ts';
import { readOperation } from './read-operation.ts';
import { type Taken, takeOperation } from './take-operation.ts';

/**
 * Sets a card's status once for its token: a token that was carried out, or refused, stays so whatever came after it.
 * A blocked card stays blocked, and a card the network has not is refused.
 */
export function takeStatusChange(
  em: Sql,
  { token, networkCardId, cardStatus }: StatusChangeRequest,
): Promise<Taken<StatusChangeAnswer>> {
  return em.transactional(async (tx) => {
    const from = await lockNetworkCard(tx, networkCardId);
    const isAllowed = from !== undefined && (from !== 'blocked' || cardStatus === 'blocked');
    const taking = await takeOperation(tx, {
      token,
      kind: 'card.status',
      behaviour: isAllowed ? SUCCESS : DECLINED,
      request: { networkCardId, cardStatus },
    });
    if (taking.status === 'refused' || taking.status === 'conflict') return taking;
    if (taking.status === 'taken' && isAllowed) await setStatus(tx, networkCardId, cardStatus);
    const state = await readOperation(tx, 'card.status', token);
    const answer: StatusChangeAnswer =
      state === 'succeeded' ? { status: 'applied' } : { status: 'refused', reason: 'refused_by_network' };
    return { status: 'answered', answer, answerIsLost: false };
  });
}

/** A block also ends the top-ups the network has not finished: nothing lands on a blocked card. */
async function setStatus(
  tx: Sql,
  networkCardId: string,
  cardStatus: StatusChangeRequest['cardStatus'],
): Promise<void> {
  await query(tx, 'UPDATE simulated_network.card SET status = $2 WHERE network_card_id = $1', [
    networkCardId,
    cardStatus,
  ]);
  if (cardStatus !== 'blocked') return;
  await query(
    tx,
    `UPDATE simulated_network.operation SET outcome = 'failed', completes_at = clock_timestamp()
      WHERE kind = 'card.topup' AND request ->> 'networkCardId' = $1 AND taken_at IS NOT NULL
        AND (completes_at IS NULL OR completes_at > clock_timestamp())`,
    [networkCardId],
  );
}
