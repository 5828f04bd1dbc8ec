import { ulid } from 'ulid';
import { TRANSFERS, type TransferDirection } from '../../../domain/transfer.ts';
import type {
  CardNetwork,
  IssueCardRequest,
  StatusChangeRequest,
  TransferAsked,
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

/** A transfer under a new token, of 100 dollars and these last two digits. */
export function transfer(
  direction: TransferDirection,
  networkCardId: string,
  lastDigits: number,
): TransferAsked {
  const token = `${TRANSFERS[direction].idPrefix}_${ulid().toLowerCase()}`;
  return { token, direction, networkCardId, amountCents: 10_000 + lastDigits };
}

export function statusChange(
  networkCardId: string,
  cardStatus: StatusChangeRequest['cardStatus'],
): StatusChangeRequest {
  return { token: `claim_${ulid().toLowerCase()}`, networkCardId, cardStatus };
}
