import { readMakers } from '../accounts/request-reads.ts';
import { parseVersion, presentBalanceTransaction } from '../accounts/resource.ts';
import { readCard } from '../cards/reads.ts';
import type { Mode, Tenant } from '../domain/mode.ts';
import { Refusal } from '../domain/refusal.ts';
import {
  type PrepaidEntry,
  readEntriesOfPostings,
  readPrepaidEntries,
  readPrepaidEntriesOfCard,
} from '../ledger/balances.ts';
import { readTransactions } from '../payments/transaction-operator-reads.ts';
import { readIdTime } from '../platform/crypto/new-id.ts';
import type { Orm } from '../platform/db/orm.ts';

interface Wanted {
  partner: string;
  mode: Mode;
  since: Date | null;
  /** Only those about this card. */
  card: string | null;
  /** Only those older than this one. */
  before: string | null;
  limit: number;
}

/**
 * Changes of a prepaid balance, newest first, with the request that caused each, if one did and it is not
 * older than 31 days.
 * @throws Refusal if there is no such card, or it is of another account or mode
 */
export async function readBalanceTransactions(
  orm: Orm,
  { partner: partnerId, mode, since, card: cardId, before, limit }: Wanted,
) {
  if (cardId !== null) await requireOwnCard(orm, { partnerId, mode }, cardId);
  const em = orm.em.fork();
  const upTo = before === null ? undefined : parseVersion(before) - 1n;
  const page = { limit, fromVersion: upTo };
  const entries =
    cardId === null
      ? await readPrepaidEntries(em, partnerId, mode, page)
      : await readCardEntries(orm, { partnerId, mode }, cardId, page);
  const found = entries
    .filter(({ createdAt }) => since === null || createdAt >= since)
    .map((entry) => presentBalanceTransaction(entry, mode));
  const makers = await readMakers(orm, [...new Set(found.map(({ source }) => source.id))]);
  return found.map((item) => ({
    ...item,
    request_id: makers.get(item.source.id)?.request_id ?? null,
    idempotency_key: makers.get(item.source.id)?.idempotency_key ?? null,
  }));
}

async function requireOwnCard(orm: Orm, { partnerId, mode }: Tenant, cardId: string): Promise<void> {
  const card = await readCard(orm, cardId);
  if (card.partner_id === partnerId && card.mode === mode) return;
  throw new Refusal(
    `${cardId} is a ${card.mode} card of ${card.partner_id} (${card.partner_name}): ask for that account.`,
  );
}

/** How many of a card's transactions are looked at together. */
const TRANSACTIONS_AT_ONCE = 1_000;
/** A transaction's id has the time of a clock that may differ from the ledger's by this much. */
const MAX_CLOCK_DIFFERENCE_MS = 3_600_000;

/**
 * A card's changes of the prepaid balance: what moved between the two, with its fees, as the card's own
 * account has it; and what each of its transactions cost beside the card's share.
 */
async function readCardEntries(
  orm: Orm,
  { partnerId, mode }: Tenant,
  cardId: string,
  page: { limit: number; fromVersion: bigint | undefined },
): Promise<PrepaidEntry[]> {
  const em = orm.em.fork();
  const moved = await readPrepaidEntriesOfCard(em, { partnerId, mode }, cardId, page);
  const fundings = moved.filter(({ code }) => code === 'issue_load' || code === 'topup');
  const fees = await readEntriesOfPostings(
    em,
    partnerId,
    mode,
    fundings.map(({ operationId }) => ({ operationId, steps: FEE_STEPS })),
  );
  let found = newest([...moved, ...fees], page);
  for (let before: string | null = null; ; ) {
    const some = await readTransactions(
      orm,
      { cardId },
      { since: null, before, limit: TRANSACTIONS_AT_ONCE },
    );
    const entries = await readEntriesOfPostings(
      em,
      partnerId,
      mode,
      some.map(({ id }) => ({ operationId: `settle/${id}`, steps: ['amount', 'late', 'fee'] })),
    );
    found = newest([...found, ...entries], page);
    const last = some.at(-1);
    if (last === undefined || some.length < TRANSACTIONS_AT_ONCE) return found;
    const oldest = found.length < page.limit ? undefined : found.at(-1);
    const isWhole =
      oldest !== undefined &&
      readIdTime(last.id).getTime() < oldest.createdAt.getTime() - MAX_CLOCK_DIFFERENCE_MS;
    if (isWhole) return found;
    before = last.id;
  }
}

/** In live mode, money is held in one step and moved in another. */
const FEE_STEPS = ['card_activation', 'card_funding'].flatMap((fee) => [fee, `${fee}:post`, `booked:${fee}`]);

const newest = (
  entries: readonly PrepaidEntry[],
  { limit, fromVersion }: { limit: number; fromVersion: bigint | undefined },
): PrepaidEntry[] =>
  entries
    .filter(({ version }) => fromVersion === undefined || BigInt(version) <= fromVersion)
    .sort((one, other) => other.version - one.version)
    .slice(0, limit);
