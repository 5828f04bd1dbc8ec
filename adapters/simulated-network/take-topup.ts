import type { Sql } from '../../db/sql.ts';
import type { TopUpRequest } from '../card-network/card-network.ts';
import { lockNetworkCard } from './lock-network-card.ts';
import { behaviourFor, DECLINED } from './outcomes.ts';
import { readTopUp, type TopUpState } from './read-topup.ts';
import { type Taken, takeOperation } from './take-operation.ts';

/** Loads a card once for its token, and says how that then stands. A card it has not, or has blocked, is declined. */
export function takeTopUp(
  em: Sql,
  { token, networkCardId, amountCents }: TopUpRequest,
): Promise<Taken<TopUpState>> {
  return em.transactional(async (tx) => {
    const cardStatus = await lockNetworkCard(tx, networkCardId);
    const isOpen = cardStatus !== undefined && cardStatus !== 'blocked';
    const behaviour = isOpen ? behaviourFor(amountCents) : DECLINED;
    const taking = await takeOperation(tx, {
      token,
      kind: 'card.topup',
      behaviour,
      request: { networkCardId, amountCents },
    });
    if (taking.status === 'refused' || taking.status === 'conflict') return taking;
    const answerIsLost = taking.status === 'taken' && behaviour.losesAnswer;
    return { status: 'answered', answer: await readTopUp(tx, token), answerIsLost };
  });
}
