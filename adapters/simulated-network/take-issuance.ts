import type { KeyObject } from 'node:crypto';
import { query, type Sql } from '../../db/sql.ts';
import type { IssueCardRequest, LookUpAnswer } from '../card-network/card-network.ts';
import { deriveCard } from '../card-network/derive-card.ts';
import { behaviourFor } from './outcomes.ts';
import { readIssuance } from './read-issuance.ts';
import { type Taken, takeOperation } from './take-operation.ts';

/** Issues a card once for its token, and says how the issuance then stands. */
export async function takeIssuance(
  em: Sql,
  cardKey: KeyObject,
  { token, productCode, bin, amountCents }: Omit<IssueCardRequest, 'cardholderName'>,
): Promise<Taken<LookUpAnswer>> {
  return em.transactional(async (tx) => {
    const behaviour = behaviourFor(amountCents);
    const taking = await takeOperation(tx, {
      token,
      kind: 'card.issuance',
      behaviour,
      request: { productCode, bin, amountCents },
    });
    if (taking.status === 'refused' || taking.status === 'conflict') return taking;
    const isNew = taking.status === 'taken';
    if (isNew && behaviour.outcome === 'succeeded') {
      const card = deriveCard(cardKey, token, bin);
      await query(
        tx,
        `INSERT INTO simulated_network.card (network_card_id, token, last4, exp_month, exp_year)
         VALUES ($1, $2, $3, $4, $5)`,
        [card.networkCardId, token, card.last4, card.expMonth, card.expYear],
      );
    }
    const found = await readIssuance(tx, token);
    // Of what it works on it says no more than that; looked up it shows the card it has made.
    const answer: LookUpAnswer = found.status === 'accepted' ? { status: 'accepted' } : found;
    return { status: 'answered', answer, answerIsLost: isNew && behaviour.losesAnswer };
  });
}
