import type {
  CardNetwork,
  OperationFailed,
  TrueUpAnswer,
  TrueUpAsked,
  TrueUpDirection,
} from '../card-network.ts';
import { INVALID_OPERATION, type IncreaseApi } from './increase-api.ts';
import type { KeyedObjects } from './keyed-objects.ts';
import { AccountTransfer, Card } from './wire.ts';

/** Moves money between the funding account and the cards'. */
export function increaseTransfers(
  api: IncreaseApi,
  { find, transfer, isTooOld }: KeyedObjects,
  fundingAccountId: string,
): Pick<CardNetwork, 'transfer' | 'lookUpTransfer' | 'trueUp'> {
  /** Its money, to the card's account or back. */
  async function move(
    { token, networkCardId, amountCents }: { token: string; networkCardId: string; amountCents: number },
    direction: TrueUpDirection,
  ) {
    const path = `/cards/${encodeURIComponent(networkCardId)}`;
    const { account_id: cardAccountId } = await api.get(path, 'operation', Card);
    const isToCard = direction === 'to_card';
    const made = await transfer({
      key: token,
      token,
      fromAccountId: isToCard ? fundingAccountId : cardAccountId,
      toAccountId: isToCard ? cardAccountId : fundingAccountId,
      amountCents,
    });
    return 'refused' in made ? { status: 'declined' as const, reason: made.refused } : readTransfer(made);
  }

  /**
   * Moves what belongs on the other side. An error makes no object, so a lack of money, such as of what
   * Increase still holds, is final only once the key is too old.
   */
  async function trueUp(asked: TrueUpAsked): Promise<TrueUpAnswer> {
    const answer = isTooOld(asked.token) ? await lookUp(asked.token) : await move(asked, asked.direction);
    if (answer.status === 'unknown') return { status: 'refused', reason: 'key_expired' };
    if (answer.status === 'declined' && answer.reason === INVALID_OPERATION)
      return { status: 'not_yet', reason: answer.reason };
    return 'reason' in answer ? { status: 'refused', reason: answer.reason } : answer;
  }

  async function lookUp(token: string) {
    const made = await find('/account_transfers', token, AccountTransfer);
    return made === null ? { status: 'unknown' as const } : readTransfer(made);
  }

  return {
    transfer: (asked) => move(asked, asked.direction === 'topup' ? 'to_card' : 'from_card'),
    lookUpTransfer: ({ token }) => lookUp(token),
    trueUp,
  };
}

function readTransfer({
  status,
}: AccountTransfer): { status: 'succeeded' } | { status: 'accepted' } | OperationFailed {
  if (status === 'canceled') return { status: 'failed', reason: 'transfer_canceled' };
  return status === 'complete' ? { status: 'succeeded' } : { status: 'accepted' };
}
