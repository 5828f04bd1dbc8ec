import { ulid } from 'ulid';
import type {
  CardNetwork,
  IssueCardRequest,
  StatusChangeRequest,
  TopUpAsked,
  WithdrawalAsked,
} from '../../../issuers/card-network.ts';

export const newToken = () => `card_${ulid().toLowerCase()}`;

/** An issuance under a new token, of 100 dollars and these last two digits. */
export function issuance(lastDigits: number, changes: Partial<IssueCardRequest> = {}): IssueCardRequest {
  return {
    token: newToken(),
    productCode: 'usd_virtual',
    bin: '53201100',
    amountCents: 10_000 + lastDigits,
    cardholderName: 'Ada Lovelace',
    ...changes,
  };
}

/** A card the network has just issued. */
export async function issuedCard(network: CardNetwork) {
  const asked = issuance(0);
  const card = await network.issueCard(asked);
  if (card.status !== 'issued') throw new Error(`the card was not issued at once but ${card.status}`);
  return { ...card, cardId: asked.token, bin: asked.bin };
}

/** A top-up under a new token, of 100 dollars and these last two digits. */
export function topUp(networkCardId: string, lastDigits: number): TopUpAsked {
  return { token: `topup_${ulid().toLowerCase()}`, networkCardId, amountCents: 10_000 + lastDigits };
}

/** A withdrawal under a new token, of 100 dollars and these last two digits. */
export function withdrawal(networkCardId: string, lastDigits: number): WithdrawalAsked {
  return { token: `wdr_${ulid().toLowerCase()}`, networkCardId, amountCents: 10_000 + lastDigits };
}

/** A status change under a new token. */
export function statusChange(
  networkCardId: string,
  cardStatus: StatusChangeRequest['cardStatus'],
): StatusChangeRequest {
  return { token: `claim_${ulid().toLowerCase()}`, networkCardId, cardStatus };
}
