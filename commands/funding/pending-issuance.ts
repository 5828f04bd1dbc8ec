import { cardColumns } from '../../db/columns.ts';
import { query } from '../../db/sql.ts';
import { cardholderName } from '../../domain/card.ts';
import type { IssuanceDecision } from '../../domain/decision.ts';
import { siblingId } from '../../domain/ids.ts';
import type { CardRow } from '../../resources/card.ts';
import type { CommandContext } from '../command-context.ts';

export interface PendingIssuance {
  token: string;
  productCode: string;
  bin: string;
  amountCents: number;
  cardholderName: string | null;
}

/** What the network is asked for, and what an operator has decided meanwhile. */
export interface OpenIssuance {
  asked: PendingIssuance;
  decision: IssuanceDecision | null;
}

/** Null where the issuance is over. The token is the card's id. */
export async function readPendingIssuance(
  { orm }: CommandContext,
  claimId: string,
): Promise<OpenIssuance | null> {
  const [card] = await query<CardRow & { bin: string; decision: OpenIssuance['decision'] }>(
    orm.em.fork(),
    `SELECT ${cardColumns('c')}, p.bin, CASE WHEN NOT c.decision ? 'refused' THEN c.decision END AS decision
     FROM card c JOIN product p ON p.code = c.product_code
     WHERE c.id = $1 AND c.status = 'funding_pending'`,
    [siblingId('card', claimId)],
  );
  if (card === undefined) return null;
  const asked = {
    token: card.id,
    productCode: card.product_code,
    bin: card.bin,
    amountCents: Number(card.funding_cents),
    cardholderName: cardholderName(card),
  };
  return { asked, decision: card.decision };
}
