import type { z } from 'zod';
import { isId } from '../../domain/ids.ts';
import type { CardNetwork, ListedCard, ListedMovement, UnreadableObject } from '../card-network.ts';
import { oldestFirst } from '../oldest-first.ts';
import { orUnreadable } from '../or-unreadable.ts';
import type { IncreaseApi } from './increase-api.ts';
import { readKey } from './keyed-objects.ts';
import { AnyPayment, readHolds, toUnreadable } from './read-payment.ts';
import { AccountTransfer, Card, Named, NamedTransfer } from './wire.ts';

const OUR_STATUSES = { active: 'active', disabled: 'frozen', canceled: 'blocked' } as const;

const MOVEMENT_STATUSES = {
  complete: 'succeeded',
  pending_approval: 'accepted',
  canceled: 'failed',
} as const;

/** Accounts that are no card's, remembered so that each takes one request. */
const MAX_REMEMBERED_ACCOUNTS = 10_000;

const CardName = Named.pick({ id: true });
const AnyCard = orUnreadable(Card, Named);
const AnyTransfer = orUnreadable(AccountTransfer, NamedTransfer);

/** What Increase has, for the reconciliation. */
export function increaseLists(
  api: IncreaseApi,
  fundingAccountId: string,
): Pick<CardNetwork, 'listCards' | 'readCard' | 'listMovements' | 'listPayments'> {
  /** What was created since then, oldest first. */
  const listSince = <Body extends { created_at: string }>(
    path: string,
    since: Date,
    shape: z.ZodType<Body>,
  ) =>
    oldestFirst(
      since,
      (from, before) => {
        const window = `created_at.on_or_after=${from.toISOString()}&created_at.before=${before.toISOString()}`;
        return api.list(`${path}?${window}`, 'reconciliation', shape);
      },
      (listed) => listed.created_at,
    );

  async function isCardsAccount(accountId: string): Promise<boolean> {
    const path = `/cards?account_id=${encodeURIComponent(accountId)}&limit=1`;
    for await (const _ of api.list(path, 'reconciliation', CardName)) return true;
    return false;
  }

  return {
    async *listCards(since) {
      for await (const card of listSince('/cards', since, AnyCard)) yield toListedCard(card);
    },

    async readCard(networkCardId) {
      const card = await api.find(`/cards/${encodeURIComponent(networkCardId)}`, 'reconciliation', AnyCard);
      return card && toListedCard(card);
    },

    async *listMovements(since) {
      const isCards = new Map<string, boolean>();
      for await (const made of listSince('/account_transfers', since, AnyTransfer)) {
        const isToCard = made.account_id === fundingAccountId;
        const isForeign = made.account_id !== null && made.destination_account_id !== null && !isToCard;
        if (isForeign && made.destination_account_id !== fundingAccountId) continue;
        const { kind, token } = readKey(made.idempotency_key);
        if ('unreadable' in made) {
          yield toUnreadable(made, token);
          continue;
        }
        const otherAccountId = isToCard ? made.destination_account_id : made.account_id;
        if (token === null) {
          let isCard = isCards.get(otherAccountId);
          if (isCard === undefined) {
            isCard = await isCardsAccount(otherAccountId);
            if (isCards.size >= MAX_REMEMBERED_ACCOUNTS) isCards.clear();
            isCards.set(otherAccountId, isCard);
          }
          if (!isCard) continue;
        }
        yield {
          networkMovementId: made.id,
          kind: token === null ? (isToCard ? 'topup' : 'withdrawal') : kind,
          token,
          amountCents: made.amount,
          status: MOVEMENT_STATUSES[made.status],
        } satisfies ListedMovement;
      }
    },

    async *listPayments(since) {
      const snapshot = await readHolds(api);
      for await (const payment of listSince('/card_payments', since, AnyPayment))
        yield 'unreadable' in payment ? toUnreadable(payment, null) : snapshot(payment);
    },
  };
}

function toListedCard(card: z.infer<typeof AnyCard>): ListedCard | UnreadableObject {
  const [id = '', step] = card.idempotency_key?.split('/') ?? [];
  const token = step === 'card' && isId('card', id) ? id : null;
  if ('unreadable' in card) return toUnreadable(card, token);
  return { networkCardId: card.id, token, status: OUR_STATUSES[card.status] };
}
