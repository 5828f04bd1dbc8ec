import type { EntityManager } from '@mikro-orm/postgresql';
import type { TopUpStatus } from '../../domain/topup.ts';
import { TopUpRequest } from '../../resources/topup.ts';
import type { CommandContext } from '../command-context.ts';
import { type ClaimedTerms, type FundingTerms, lockFundingTerms } from './funding-terms.ts';

/** What a top-up is decided on, beside the card's own row. */
export interface TopUpTerms extends FundingTerms {
  request: TopUpRequest;
  /** On the card. */
  cardCents: number;
  /** What its pending top-ups would add. */
  arrivingCents: bigint;
}

/** {@link lockFundingTerms} of a top-up. @param topUpId the id the top-up has or will have */
export async function lockTopUpTerms(
  tx: EntityManager,
  context: CommandContext,
  claimId: string,
  topUpId: string,
): Promise<
  | (ClaimedTerms &
      TopUpTerms & {
        cardId: string;
        /** The top-up's status where an earlier run of this step has made it already. */
        topUpStatus: TopUpStatus | null;
      })
  | null
> {
  const locked = await lockFundingTerms<TopUpStatus>(tx, context, claimId, topUpId);
  if (locked === null) return null;
  const { terms, status } = locked;
  if (terms.cardId === null) throw new Error(`the claim ${claimId} of a top-up names no card`);
  return {
    ...terms,
    request: TopUpRequest.parse(terms.request),
    cardId: terms.cardId,
    topUpStatus: status,
  };
}
