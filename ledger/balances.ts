import { sql } from 'kysely';
import type { Mode, Tenant } from '../domain/mode.ts';
import { cursorStatement, type Reader, tenantStatement } from '../platform/db/sql.ts';
import { accountId, type Balance, type TransferCode, toBalance, transferId } from './posting.ts';

/** The partner's prepaid balance in one mode: zeros if nothing has touched it yet. */
export async function readBalance(em: Reader, partnerId: string, mode: Mode): Promise<Balance> {
  const [row] = await account(em, { partnerId, mode }, { id: accountId('prepaid', partnerId, mode) });
  return toBalance(row?.posted ?? '0', row?.held ?? '0');
}

/** The threshold of an account's balance alert; null: off. */
export async function readAlertThreshold(em: Reader, { partnerId, mode }: Tenant): Promise<number | null> {
  const id = accountId('prepaid', partnerId, mode);
  const [row] = await account(em, { partnerId, mode }, { id });
  return row?.alert_cents == null ? null : Number(row.alert_cents);
}

/** Cents on a card, and how many of them are held: 0 if nothing has touched it yet. */
export async function readCardBalance(
  em: Reader,
  tenant: Tenant,
  cardId: string,
): Promise<{ balanceCents: number; heldCents: number }> {
  const [row] = await selectCardAccount(em, tenant, { cardId });
  return { balanceCents: Number(row?.posted ?? 0), heldCents: Number(row?.held ?? 0) };
}

/** One change of a prepaid balance, as the ledger wrote it. */
export interface PrepaidEntry {
  /** Its number in the account's chain, from 1, without a gap. */
  version: number;
  transferId: string;
  operationId: string;
  code: TransferCode;
  /** Credits above zero, debits below. */
  amountCents: number;
  balanceAfterCents: number;
  createdAt: Date;
}

/** The newest `limit` entries of a prepaid account; with `fromVersion` the newest from that one backwards. */
export async function readPrepaidEntries(
  em: Reader,
  partnerId: string,
  mode: Mode,
  { limit, fromVersion = MAX_BIGINT }: { limit: number; fromVersion?: bigint | undefined },
): Promise<PrepaidEntry[]> {
  const id = accountId('prepaid', partnerId, mode);
  const rows = await entries(
    em,
    { partnerId, mode },
    { accountId: id, fromVersion: String(fromVersion), limit },
  );
  return rows.map(presentEntry);
}

const MAX_BIGINT = 2n ** 63n - 1n;

/** Numbers of a prepaid account's entries: those above `above`, and `upTo` at most. */
interface Versions {
  above: bigint;
  upTo: bigint;
}

export const EVERY_VERSION: Versions = { above: 0n, upTo: MAX_BIGINT };

/**
 * The numbers of a prepaid account's entries that were made between two times, to the millisecond; both are
 * included.
 */
export async function readPrepaidVersions(
  em: Reader,
  { partnerId, mode }: Tenant,
  from: Date | undefined,
  until: Date | undefined,
): Promise<Versions> {
  const id = accountId('prepaid', partnerId, mode);
  const before = until && new Date(until.getTime() + 1);
  const [row] = await versions(em, { partnerId, mode }, { id, from: from ?? null, before: before ?? null });
  return { above: BigInt(row?.above ?? 0), upTo: BigInt(row?.up_to ?? 0) };
}

/**
 * The entries of a prepaid account that were made from one time on and before another, oldest first, in
 * batches.
 */
export async function* streamPrepaidEntries(
  em: Reader,
  { partnerId, mode }: Tenant,
  { from, to }: { from: Date; to: Date },
): AsyncGenerator<PrepaidEntry[]> {
  const id = accountId('prepaid', partnerId, mode);
  for await (const rows of entriesBetween(em, { partnerId, mode }, { accountId: id, from, to })) {
    yield rows.map(presentEntry);
  }
}

/**
 * The newest `limit` entries that moved money between a card and the prepaid balance; with `fromVersion` the
 * newest from that one backwards. Both accounts are locked for such a transfer, so their chains have them in
 * the same order.
 */
export async function readPrepaidEntriesOfCard(
  em: Reader,
  tenant: Tenant,
  cardId: string,
  { limit, fromVersion = MAX_BIGINT }: { limit: number; fromVersion?: bigint | undefined },
): Promise<PrepaidEntry[]> {
  const { partnerId, mode } = tenant;
  const rows = await selectEntriesOfCard(em, tenant, {
    cardAccountId: accountId({ cardId }, partnerId, mode),
    prepaidAccountId: accountId('prepaid', partnerId, mode),
    fromVersion: String(fromVersion),
    limit,
  });
  return rows.map(presentEntry);
}

/**
 * The entries that these operations made in a prepaid account, newest first. They are found by their ids,
 * which are derived from the operations and their steps.
 */
export async function readEntriesOfPostings(
  em: Reader,
  partnerId: string,
  mode: Mode,
  operations: readonly { operationId: string; steps: readonly string[] }[],
): Promise<PrepaidEntry[]> {
  const transferIds = operations.flatMap(({ operationId, steps }) =>
    steps.map((step) => transferId(operationId, step)),
  );
  const rows = await selectEntries(
    em,
    { partnerId, mode },
    { transferIds, accountId: accountId('prepaid', partnerId, mode) },
  );
  return rows.map(presentEntry);
}

const account = tenantStatement((db, { partnerId, mode, id }: Tenant & { id: string }) =>
  db
    .selectFrom('ledger.account')
    .select(['posted', 'held', 'alert_cents'])
    .where('id', '=', id)
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode),
);

const selectCardAccount = tenantStatement((db, { partnerId, mode, cardId }: Tenant & { cardId: string }) =>
  db
    .selectFrom('ledger.account')
    .select(['posted', 'held'])
    .where('card_id', '=', cardId)
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode),
);

const versions = tenantStatement(
  (
    db,
    { partnerId, mode, id, from, before }: Tenant & { id: string; from: Date | null; before: Date | null },
  ) =>
    db
      .selectFrom('ledger.account')
      .select([
        sql<string>`CASE WHEN ${from}::timestamptz IS NULL THEN 0 ELSE ledger.version_before(id, ${from}) END`.as(
          'above',
        ),
        sql<string>`CASE WHEN ${before}::timestamptz IS NULL THEN version ELSE ledger.version_before(id, ${before}) END`.as(
          'up_to',
        ),
      ])
      .where('id', '=', id)
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode),
);

type EntriesAsked = Tenant & { accountId: string; fromVersion: string; limit: number };

const entries = tenantStatement((db, { partnerId, mode, accountId, fromVersion, limit }: EntriesAsked) =>
  db
    .selectFrom(({ selectFrom }) =>
      selectFrom('ledger.entry')
        .select(['account_version', 'transfer_id', 'side', 'amount', 'balance_after'])
        .where('account_id', '=', accountId)
        .where('account_version', '<=', fromVersion)
        .where('account_version', 'is not', null)
        .orderBy('account_version', 'desc')
        .limit(limit)
        .as('e'),
    )
    .innerJoinLateral(
      // The LIMIT keeps the planner from joining every transfer when only one page is wanted.
      ({ selectFrom }) =>
        selectFrom('ledger.transfer')
          .select(['operation_id', 'code', 'created_at'])
          .whereRef('id', '=', 'e.transfer_id')
          .where('partner_id', '=', partnerId)
          .where('mode', '=', mode)
          .limit(sql.lit(1))
          .as('t'),
      (join) => join.onTrue(),
    )
    .select(['e.account_version', 'e.transfer_id', 'e.side', 'e.amount', 'e.balance_after'])
    .select(['t.operation_id', 't.code', 't.created_at'])
    .orderBy('e.account_version', 'desc'),
);

type EntryRow = Awaited<ReturnType<typeof entries>>[number];

const entriesBetween = cursorStatement(
  (
    _,
    { partnerId, mode, accountId, from, to }: Tenant & { accountId: string; from: Date; to: Date },
  ) => sql<EntryRow>`
    SELECT e.account_version, e.transfer_id, e.side, e.amount, e.balance_after,
      t.operation_id, t.code, t.created_at
    FROM ledger.entry e
      CROSS JOIN LATERAL (SELECT operation_id, code, created_at FROM ledger.transfer
        WHERE id = e.transfer_id AND partner_id = ${partnerId} AND mode = ${mode} LIMIT 1) t
    WHERE e.account_id = ${accountId}
      AND e.account_version > (SELECT ledger.version_before(${accountId}, ${from}))
      AND e.account_version <= (SELECT ledger.version_before(${accountId}, ${to}))
        AND e.account_version IS NOT NULL
    ORDER BY e.account_version`,
);

const selectEntries = tenantStatement(
  (
    _,
    { partnerId, mode, transferIds, accountId }: Tenant & { transferIds: string[]; accountId: string },
  ) => sql<EntryRow>`
    SELECT e.account_version, e.transfer_id, e.side, e.amount, e.balance_after,
      t.operation_id, t.code, t.created_at
    FROM unnest(${transferIds}::uuid[]) wanted (id)
      CROSS JOIN LATERAL (SELECT operation_id, code, created_at, booked_on FROM ledger.transfer
        WHERE id = wanted.id AND partner_id = ${partnerId} AND mode = ${mode} LIMIT 1) t
      CROSS JOIN LATERAL (SELECT account_version, transfer_id, side, amount, balance_after FROM ledger.entry
        WHERE transfer_id = wanted.id AND booked_on = t.booked_on AND account_id = ${accountId}
          AND account_version IS NOT NULL LIMIT 1) e
    ORDER BY e.account_version DESC`,
);

// It walks the card's chain backwards, until it has found as many as are asked for.
const selectEntriesOfCard = tenantStatement(
  (
    _,
    {
      partnerId,
      mode,
      cardAccountId,
      prepaidAccountId,
      fromVersion,
      limit,
    }: Tenant & { cardAccountId: string; prepaidAccountId: string; fromVersion: string; limit: number },
  ) => sql<EntryRow>`
    SELECT e.account_version, e.transfer_id, e.side, e.amount, e.balance_after,
      t.operation_id, t.code, t.created_at
    FROM ledger.entry c
      CROSS JOIN LATERAL (SELECT operation_id, code, created_at FROM ledger.transfer
        WHERE id = c.transfer_id AND partner_id = ${partnerId} AND mode = ${mode}
          AND (debit_id = ${prepaidAccountId} OR credit_id = ${prepaidAccountId}) LIMIT 1) t
      CROSS JOIN LATERAL (SELECT account_version, transfer_id, side, amount, balance_after FROM ledger.entry
        WHERE transfer_id = c.transfer_id AND booked_on = c.booked_on AND account_id = ${prepaidAccountId}
          AND account_version <= ${fromVersion} LIMIT 1) e
    WHERE c.account_id = ${cardAccountId} AND c.account_version IS NOT NULL
    ORDER BY c.account_version DESC LIMIT ${limit}`,
);

function presentEntry(row: EntryRow): PrepaidEntry {
  return {
    version: Number(row.account_version),
    transferId: row.transfer_id,
    operationId: row.operation_id,
    code: row.code as TransferCode,
    amountCents: row.side === 'credit' ? Number(row.amount) : -Number(row.amount),
    balanceAfterCents: Number(row.balance_after),
    createdAt: new Date(row.created_at),
  };
}
