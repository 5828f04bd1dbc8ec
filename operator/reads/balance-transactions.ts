import { Refusal } from '../../commands/refusal.ts';
import type { Orm } from '../../db/orm.ts';
import type { Tenant } from '../../domain/mode.ts';
import { readEntriesOfOperations, readPrepaidEntries } from '../../ledger/balances.ts';
import {
  type BalanceTransactionResource,
  presentBalanceTransaction,
  versionOf,
} from '../../resources/balance-transaction.ts';
import { readCard } from './cards.ts';
import { readMakers } from './requests.ts';
import { readTopUps } from './topups.ts';
import { readTransactions } from './transactions.ts';

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
  const upTo = before === null ? undefined : versionOf(before) - 1n;
  const entries =
    cardId === null
      ? await readPrepaidEntries(em, partnerId, mode, { limit, fromVersion: upTo })
      : await readEntriesOfOperations(em, partnerId, mode, await operationsOfCard(orm, cardId, limit));
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
export async function requireCardOf(orm: Orm, { partnerId, mode }: Tenant, cardId: string): Promise<void> {
  const card = await readCard(orm, cardId);
  if (card.partner_id === partnerId && card.mode === mode) return;
  throw new Refusal(
    `${cardId} is a ${card.mode} card of ${card.partner_id} (${card.partner_name}): ask for that account.`,
  );
}

/** What can have moved money between a card and the prepaid balance, with the steps that each operation can have. */
async function operationsOfCard(orm: Orm, cardId: string, limit: number) {
  const page = { before: null, limit };
  const topUps = await readTopUps(orm, { cardId }, page);
  const transactions = await readTransactions(orm, { cardId }, page);
  return [
    { operationId: `issue/${cardId}`, steps: eachPosted('load', 'card_activation', 'card_funding') },
    { operationId: `block/${cardId}`, steps: ['release'] },
    ...topUps.map(({ id }) => ({ operationId: `topup/${id}`, steps: eachPosted('topup', 'card_funding') })),
    ...transactions.map(({ id }) => ({ operationId: `settle/${id}`, steps: ['amount', 'fee'] })),
  ];
}

/** In live mode, money is held in one step and moved in another. */
const eachPosted = (...steps: string[]): string[] => steps.flatMap((step) => [step, `${step}:post`]);
