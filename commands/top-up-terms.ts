import type { EntityManager } from '@mikro-orm/postgresql';
import { TopUpRequest } from '../domain/top-up-request.ts';
import type { TopUpStatus } from '../domain/topup-resource.ts';
import type { CommandContext } from './command-context.ts';
import { type FundingTerms, lockFundingTerms } from './funding-terms.ts';

/** What a top-up is decided on, beside the card's own row. */
export interface TopUpTerms extends FundingTerms {
  request: TopUpRequest;
  cardId: string;
  /** On the card, or about to be: no card can have more than the largest integer. */
  cardCents: bigint;
  /** The top-up's status where an earlier run of this step has made it already. */
  topUpStatus: TopUpStatus | null;
}

/** {@link lockFundingTerms} of a top-up. @param topUpId the id the top-up has or will have */
export async function lockTopUpTerms(
  tx: EntityManager,
  context: CommandContext,
  claimId: string,
  topUpId: string,
): Promise<TopUpTerms | null> {
  const locked = await lockFundingTerms<Row>(tx, context, claimId, {
    columns: `t.status AS topup_status, ${CARD_CENTS} AS card_cents`,
    joins: 'LEFT JOIN topup t ON t.id = $2',
    values: [topUpId],
  });
  if (locked === null) return null;
  const { terms, more } = locked;
  if (terms.cardId === null) throw new Error(`the claim ${claimId} of a top-up names no card`);
  return {
    ...terms,
    request: TopUpRequest.parse(terms.request),
    cardId: terms.cardId,
    topUpStatus: more.topup_status,
    cardCents: BigInt(more.card_cents),
  };
}

interface Row {
  topup_status: TopUpStatus | null;
  card_cents: string;
}

const CARD_CENTS = `
  coalesce((SELECT a.posted FROM ledger.account a WHERE a.card_id = c.card_id), 0)
  + coalesce((SELECT sum(o.amount_cents) FROM topup o WHERE o.card_id = c.card_id AND o.status = 'pending'), 0)`;
