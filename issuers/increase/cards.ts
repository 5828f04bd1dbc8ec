import type { IncreaseConfig } from '../../platform/config/card-networks.ts';
import type { CardNetwork, IssueCardRequest, LookUpAnswer, StatusChangeRequest } from '../card-network.ts';
import { type IncreaseApi, type Refusal, unavailable } from './increase-api.ts';
import type { KeyedObjects } from './keyed-objects.ts';
import { Account, AccountTransfer, Card, CardDetails } from './wire.ts';

export interface CardOptions {
  config: IncreaseConfig;
  /** Whether a change of a card's status is still the one under way. */
  isUnderWay(change: StatusChangeRequest): Promise<boolean>;
  /**
   * Whether the card with our id was issued by our record, so that nothing may cancel it but a change of its
   * status.
   */
  isInUse(cardId: string): Promise<boolean>;
}

const CARD_STATUSES = { active: 'active', frozen: 'disabled', blocked: 'canceled' } as const;

/** Issues cards, changes and reveals them. */
export function increaseCards(
  api: IncreaseApi,
  { find, create, transfer }: KeyedObjects,
  { config, isUnderWay, isInUse }: CardOptions,
): Pick<CardNetwork, 'issueCard' | 'lookUpIssuance' | 'changeCardStatus' | 'revealCard'> {
  /**
   * Makes the account, then the card, then the transfer, each with a key of its own, because a key at
   * Increase is one object. The money comes last, so a no moves none. Their turns are taken together: if one
   * were missed halfway, the next attempt would have to take those before it again.
   */
  async function issueCard(asked: IssueCardRequest): Promise<Exclude<LookUpAnswer, { status: 'unknown' }>> {
    const { token, amountCents, issuerProduct } = asked;
    await api.takeTurns('operation', 3);
    const account = await create('/accounts', Account, {
      key: `${token}/account`,
      token,
      hasTurn: true,
      body: {
        name: token,
        program_id: issuerProduct ?? config.programId ?? undefined,
        entity_id: config.entityId ?? undefined,
      },
    });
    if ('refused' in account) return { status: 'declined', reason: account.refused };
    const card = await create('/cards', Card, {
      key: `${token}/card`,
      token,
      hasTurn: true,
      body: { account_id: account.id, description: token },
    });
    if ('refused' in card) return { status: 'declined', reason: card.refused };
    // An earlier run was refused the transfer, and its answer may have got lost. Asked again now, the
    // transfer could succeed.
    if (card.status === 'canceled') return readCanceled(token, card, 'card_canceled');
    const movement = {
      key: `${token}/transfer`,
      token,
      fromAccountId: config.fundingAccountId,
      toAccountId: account.id,
      amountCents,
      hasTurn: true,
    };
    const made = await transfer(movement);
    if (!('refused' in made) && made.status !== 'canceled') return readIssuance(card, made);
    await setStatus(card.id, 'canceled', async () => {
      const known = await find('/account_transfers', movement.key, AccountTransfer);
      if (known !== null && known.status !== 'canceled') throw unavailable('the transfer was made after all');
    });
    // Another process may have got the transfer meanwhile.
    return readCanceled(token, card, 'refused' in made ? made.refused : 'transfer_canceled');
  }

  /** A card that was canceled before its transfer: that is a no, unless there is a transfer all the same. */
  async function readCanceled(token: string, card: Card, reason: string) {
    const made = await find('/account_transfers', `${token}/transfer`, AccountTransfer);
    return made === null ? { status: 'declined' as const, reason } : readIssuance(card, made);
  }

  async function setStatus(
    networkCardId: string,
    status: Card['status'],
    check: () => Promise<void>,
  ): Promise<Card | Refusal> {
    const path = `/cards/${encodeURIComponent(networkCardId)}`;
    const action = { method: 'PATCH', path, body: { status }, key: null, turn: 'operation', check } as const;
    const answer = await api.act(action, Card);
    if (!('refused' in answer)) {
      if (answer.status !== status) throw unavailable('a card did not get the status that was asked for');
      return answer;
    }
    const card = await api.get(path, 'operation', Card);
    return card.status === status ? card : answer;
  }

  return {
    issueCard,
    /**
     * An account or a card without its transfer is nothing yet, unless the card was canceled because of it. A
     * canceled transfer is a no, which cancels the card first.
     */
    async lookUpIssuance(token) {
      const card = await find('/cards', `${token}/card`, Card);
      if (card === null) return { status: 'unknown' };
      if (card.status === 'canceled') return readCanceled(token, card, 'card_canceled');
      const made = await find('/account_transfers', `${token}/transfer`, AccountTransfer);
      if (made === null) return { status: 'unknown' };
      if (made.status === 'canceled' && !(await isInUse(token)))
        await setStatus(card.id, 'canceled', async () => {});
      return readIssuance(card, made);
    },

    /** Increase takes no key here, so a change that has been overtaken must not be sent. */
    async changeCardStatus(asked) {
      const answer = await setStatus(asked.networkCardId, CARD_STATUSES[asked.cardStatus], async () => {
        if (!(await isUnderWay(asked))) throw unavailable('the change is not under way any more');
      });
      return 'refused' in answer ? { status: 'refused', reason: answer.refused } : { status: 'applied' };
    },

    async revealCard({ networkCardId }) {
      const path = `/cards/${encodeURIComponent(networkCardId)}/details`;
      const details = await api.get(path, 'reveal', CardDetails);
      if (details.card_id !== networkCardId)
        throw unavailable('it answered with the details of another card');
      return {
        pan: details.primary_account_number,
        cvv: details.verification_code,
        expMonth: details.expiration_month,
        expYear: details.expiration_year,
      };
    },
  };
}

function readIssuance(card: Card, { status }: AccountTransfer): Exclude<LookUpAnswer, { status: 'unknown' }> {
  if (status === 'canceled') return { status: 'failed', reason: 'transfer_canceled' };
  const issued = {
    networkCardId: card.id,
    last4: card.last4,
    expMonth: card.expiration_month,
    expYear: card.expiration_year,
  };
  return status === 'complete' ? { status: 'issued', ...issued } : { status: 'accepted', card: issued };
}
