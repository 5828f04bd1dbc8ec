import { Refusal } from '../../commands/refusal.ts';
import type { Orm } from '../../db/orm.ts';
import type { Tenant } from '../../domain/mode.ts';
import { readEntriesOfPostings, readPrepaidEntries } from '../../ledger/balances.ts';
import {
  type BalanceTransactionResource,
  parseVersion,
  presentBalanceTransaction,
} from '../../resources/balance-transaction.ts';
import { readHolds } from './authorizations.ts';
import { readCard } from './cards.ts';
import { readMakers } from './requests.ts';
import { readTopUps } from './topups.ts';
import { readTransactions } from './transactions.ts';
import { readWithdrawals } from './withdrawals.ts';

/** A change of a prepaid balance, with the request that caused it, if one did and it is not older than 31 days. */
export interface OperatorBalanceTransaction extends BalanceTransactionResource {
  request_id: string | null;
  idempotency_key: string | null;
}

interface Page {
  /** Only those since then. */
  since: Date | null;
  /** Only those about this card. */
  cardId: string | null;
  /** Only those older than this one. */
  before: string | null;
  limit: number;
}

/**
 * Newest first.
 * @throws Refusal if the card is not one of this account and mode.
 */
export async function readBalanceTransactions(
  orm: Orm,
  { partnerId, mode }: Tenant,
  { since, cardId, before, limit }: Page,
): Promise<OperatorBalanceTransaction[]> {
  const em = orm.em.fork();
  const upTo = before === null ? undefined : parseVersion(before) - 1n;
  const entries =
    cardId === null
      ? await readPrepaidEntries(em, partnerId, mode, { limit, fromVersion: upTo })
      : await readEntriesOfPostings(em, partnerId, mode, await readCardOperations(orm, cardId, limit));
  const found = entries
    .filter(({ version }) => upTo === undefined || BigInt(version) <= upTo)
    .filter(({ createdAt }) => since === null || createdAt >= since)
    .slice(0, limit)
    .map((entry) => presentBalanceTransaction(entry, mode));
  const makers = await readMakers(orm, [...new Set(found.map(({ source }) => source.id))]);
  return found.map((item) => ({
    ...item,
    request_id: makers.get(item.source.id)?.request_id ?? null,
    idempotency_key: makers.get(item.source.id)?.idempotency_key ?? null,
  }));
}

/** @throws Refusal if there is no such card, or it is of another account or mode. */
export async function requireOwnCard(orm: Orm, { partnerId, mode }: Tenant, cardId: string): Promise<void> {
  const card = await readCard(orm, cardId);
  if (card.partner_id === partnerId && card.mode === mode) return;
  throw new Refusal(
    `${cardId} is a ${card.mode} card of ${card.partner_id} (${card.partner_name}): ask for that account.`,
  );
}

/** What can have moved money between a card and the prepaid balance, with the steps that each operation can have. */
async function readCardOperations(orm: Orm, cardId: string, limit: number) {
  const page = { before: null, limit };
  const topUps = await readTopUps(orm, { cardId }, page);
  const withdrawals = await readWithdrawals(orm, { cardId }, page);
  const transactions = await readTransactions(orm, { cardId }, page);
  const authorizations = await readHolds(orm, { cardId, limit });
  // What an authorization held when its card was blocked is released as it becomes free, hold by hold.
  const releases = authorizations.flatMap(({ id, holds }) =>
    Array.from({ length: holds }, (_, index) => `release/${id}/${index + 1}`),
  );
  return [
    { operationId: `issue/${cardId}`, steps: eachPosted('load', 'card_activation', 'card_funding') },
    {
      operationId: `block/${cardId}`,
      steps: ['release', ...releases, ...withdrawals.map(({ id }) => `release/${id}`)],
    },
    ...topUps.map(({ id }) => ({
      operationId: `topup/${id}`,
      steps: [...eachPosted('topup', 'card_funding'), 'booked:topup', 'booked:card_funding'],
    })),
    ...withdrawals.map(({ id }) => ({
      operationId: `withdrawal/${id}`,
      steps: [...eachPosted('withdrawal'), 'booked:withdrawal'],
    })),
    ...transactions.map(({ id }) => ({ operationId: `settle/${id}`, steps: ['amount', 'late', 'fee'] })),
  ];
}

/** In live mode, money is held in one step and moved in another. */
const eachPosted = (...steps: string[]): string[] => steps.flatMap((step) => [step, `${step}:post`]);
