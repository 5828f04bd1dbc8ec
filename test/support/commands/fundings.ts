import type { CommandContext } from '../../../commands/command-context.ts';
import {
  acceptFunding,
  beginFunding,
  completeFunding,
  type FundingContext,
  failFunding,
} from '../../../commands/funding/funding.ts';
import { ISSUANCE } from '../../../commands/funding/issuance.ts';
import { TOPUP } from '../../../commands/funding/topup.ts';
import type { CardFailureCode, IssuedCard } from '../../../domain/card.ts';
import type { TopUpFailureCode } from '../../../domain/topup.ts';

// The steps of a funding, by its kind: what activities and the API do of a claim.

export const beginIssuance = (context: FundingContext, claimId: string) =>
  beginFunding(ISSUANCE, context, claimId);
export const acceptIssuance = (context: CommandContext, claimId: string) =>
  acceptFunding(ISSUANCE, context, claimId);
export const activateCard = (context: CommandContext, claimId: string, issued: IssuedCard) =>
  completeFunding(ISSUANCE, context, claimId, issued);
export const failIssuance = (context: CommandContext, claimId: string, failure: CardFailureCode) =>
  failFunding(ISSUANCE, context, claimId, failure);

export const beginTopUp = (context: FundingContext, claimId: string) => beginFunding(TOPUP, context, claimId);
export const acceptTopUp = (context: CommandContext, claimId: string) =>
  acceptFunding(TOPUP, context, claimId);
export const completeTopUp = (context: CommandContext, claimId: string) =>
  completeFunding(TOPUP, context, claimId, {});
export const failTopUp = (context: CommandContext, claimId: string, failure: TopUpFailureCode) =>
  failFunding(TOPUP, context, claimId, failure);
