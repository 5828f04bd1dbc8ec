import { ulid } from 'ulid';
import type { IssueCardRequest } from '../../../adapters/card-network/card-network.ts';

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
