import type { EntityManager } from '@mikro-orm/postgresql';
import { issuableIn, issuableProducts, type Product } from '../../db/issuable-products.ts';
import type { CardStatus } from '../../domain/card-status.ts';
import { CreateCardRequest } from '../../resources/card.ts';
import type { IssuanceContext } from '../command-context.ts';
import { type ClaimedTerms, type FundingTerms, lockFundingTerms } from './funding-terms.ts';

/** What an issuance is decided on. */
export interface IssuanceTerms extends FundingTerms {
  request: CreateCardRequest;
  /** What the account may issue, the current product first (decisions.md, "Products"). */
  products: Product[];
}

/** {@link lockFundingTerms} of an issuance. @param cardId the id the card has or will have */
export async function lockIssuanceTerms(
  tx: EntityManager,
  context: IssuanceContext,
  claimId: string,
  cardId: string,
): Promise<
  | (ClaimedTerms &
      IssuanceTerms & {
        /** The card's status where an earlier run of this step has made it already. */
        cardStatus: CardStatus | null;
      })
  | null
> {
  const locked = await lockFundingTerms<CardStatus, { products: Product[] }>(tx, context, claimId, cardId, [
    `${issuableProducts('f.partner_id')} AS products`,
  ]);
  if (locked === null) return null;
  const { terms, status, more } = locked;
  return {
    ...terms,
    request: CreateCardRequest.parse(terms.request),
    cardStatus: status,
    products: issuableIn(terms.mode, more.products, context.liveNetworkConfigured),
  };
}
