import { sql } from 'kysely';
import { accountsNow, heldClock } from '../accounts/clock.ts';
import { lockTestAccount } from '../accounts/lock-test-account.ts';
import { type AccountClock, accountTime } from '../domain/account-clock.ts';
import { type DepositNetwork, TEST_NETWORK, type TestPayment } from '../domain/deposit.ts';
import type { Tenant } from '../domain/mode.ts';
import { readIdTime } from '../platform/crypto/new-id.ts';
import { DEPOSIT_COLUMNS } from '../platform/db/columns.ts';
import { followingAccounts } from '../platform/db/following-accounts.ts';
import type { Orm } from '../platform/db/orm.ts';
import {
  columnList,
  type Reader,
  readStatement,
  tenantStatement,
  writeStatement,
} from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { type KeyedResponse, respondOnce, respondWith } from '../requests/respond-once.ts';
import {
  type AccountDeposits,
  type AccountsWanted,
  accountOf,
  MAX_AT_ONCE,
  writeDepositEvents,
} from './deposit-state.ts';
import { MAX_OPEN_DEPOSITS, tooManyOpen } from './open.ts';
import { type DepositRow, presentDeposit } from './resource.ts';

const HOURS_8_MS = 8 * 3_600_000;
const SECOND_MS = 1_000;

/**
 * Opens a deposit in test mode, whose payment comes from {@link playTestDeposits} (docs/partners/testing.md).
 * Nothing on a chain belongs to it: no wallet accepts its address.
 * @throws ApiError `limit_exceeded`, `idempotency_conflict`
 */
export function openTestDeposit(
  context: CommandContext,
  request: KeyedRequest<'create_test_deposit'>,
  { amountCents, payment }: { amountCents: number; payment: TestPayment },
): Promise<KeyedResponse> {
  const { ring } = context;
  return respondOnce(context, request, async (tx) => {
    const locked = await lockTestAccount({ tx, ring }, request, { counts: false });
    if ('replayed' in locked) return locked;
    const [open] = await countOpen(tx, request, {});
    if ((open?.count ?? 0) >= MAX_OPEN_DEPOSITS) throw tooManyOpen();
    const { resourceId: id, partnerId, mode } = request;
    const createdAt = accountTime(locked.clock, readIdTime(id));
    const after = (ms: number) => new Date(createdAt.getTime() + ms).toISOString();
    const expiresAt = after(payment === 'late' ? SECOND_MS : HOURS_8_MS);
    const isPaidInTime = payment !== 'late' && payment !== 'none';
    const row = {
      id,
      partner_id: partnerId,
      mode,
      network: TEST_NETWORK as DepositNetwork,
      contract_address: 'test_usdt',
      address: `test_${id.slice('dep_'.length)}`,
      amount_cents: String(amountCents),
      status: 'awaiting_payment' as const,
      received_micro_usdt: '0',
      credited_cents: '0',
      payments: null,
      created_at: createdAt.toISOString(),
      expires_at: expiresAt,
      confirmed_at: null,
    };
    await insert(tx, { ...row, payment, dueAt: isPaidInTime ? after(SECOND_MS) : expiresAt });
    return respondWith({ tx, ring }, request, 201, presentDeposit(row));
  });
}

/**
 * Does what is due for test deposits of an account: a payment arrives, for creditPayments to judge, or a
 * deposit expires, with `deposit.expired`. One transaction of two statements. Those that another transaction
 * holds, or that are not due, stay as they are.
 * @returns for how many it did something
 */
export function playTestDeposits(
  orm: Orm,
  { partnerId, mode, depositIds }: AccountDeposits,
): Promise<number> {
  return transaction(orm, async (tx) => {
    const played = await play(tx, { partnerId, mode, depositIds });
    const expired = played
      .filter(({ expires }) => expires)
      .map(({ expires: _, clock, ...row }) => ({
        type: 'deposit.expired' as const,
        row: { ...row, received_micro_usdt: '0', payments: null },
        clock,
      }));
    await writeDepositEvents(tx, expired);
    return played.length;
  });
}

/**
 * Finds the work for {@link playTestDeposits}, ordered by account, and each account's in the order of its due
 * times.
 */
export function findDueTestDeposits(
  em: Reader,
  { after, except, limit }: AccountsWanted,
): Promise<AccountDeposits[]> {
  return due(em, { after: after?.partnerId ?? '', except: except.map(accountOf), limit });
}

const countOpen = tenantStatement(
  (_, { partnerId, mode }: Tenant) => sql<{ count: number }>`
    SELECT count(*)::int AS count FROM (
      SELECT FROM deposit d
      WHERE d.partner_id = ${partnerId} AND d.mode = ${mode}
        AND d.status IN ('awaiting_payment', 'confirming')
      LIMIT ${sql.lit(MAX_OPEN_DEPOSITS)}) open`,
);

const insert = writeStatement(
  (db, row: Omit<DepositRow, 'payments'> & { payment: TestPayment; dueAt: string }) =>
    db.insertInto('deposit').values({
      id: row.id,
      partner_id: row.partner_id,
      mode: row.mode,
      network: row.network,
      contract_address: row.contract_address,
      address: row.address,
      amount_cents: row.amount_cents,
      created_at: row.created_at,
      changed_at: row.created_at,
      expires_at: row.expires_at,
      told_version: null,
      test_payment: row.payment,
      due_at: row.dueAt,
    }),
);

type Played = Omit<DepositRow, 'received_micro_usdt' | 'payments'> & {
  expires: boolean;
  clock: AccountClock;
};

// Written out: it writes two tables. A late payment comes a second after its deposit has expired. The time of
// a payment's block is when it was due, so a clock that was advanced meanwhile doesn't make it late. Its hash
// is made from the deposit's id, so it arrives once; no chain has it.
const play = writeStatement(
  (_, { partnerId, mode, depositIds }: Tenant & { depositIds: readonly string[] }) => sql<Played>`
    WITH due AS MATERIALIZED (
      SELECT d.id, d.due_at, ${heldClock(sql.ref('d.partner_id'), sql.ref('d.mode'))} AS clock,
        d.status = 'awaiting_payment' AND d.test_payment IN ('late', 'none') AS expires
      FROM deposit d
      WHERE d.id = ANY (${depositIds}::text[]) AND d.partner_id = ${partnerId} AND d.mode = ${mode}
        AND d.due_at <= account_now(${partnerId}, ${mode})
      ORDER BY d.id FOR NO KEY UPDATE SKIP LOCKED
    ), arrived AS (
      INSERT INTO deposit_payment (network, tx_hash, log_index, deposit_id, partner_id, mode,
        value_micro_usdt, block_number, transaction_index, block_time)
      SELECT d.network, encode(sha256(convert_to('test deposit ' || d.id, 'UTF8')), 'hex'), 0, d.id,
        d.partner_id, d.mode,
        CASE d.test_payment WHEN 'short' THEN d.amount_cents * 5000 WHEN 'over' THEN d.amount_cents * 10000 + 1000000
          ELSE d.amount_cents * 10000 END,
        (extract(epoch FROM due.due_at) / 3)::bigint, 0, due.due_at
      FROM due JOIN deposit d ON d.id = due.id AND d.partner_id = ${partnerId} AND d.mode = ${mode}
      WHERE NOT due.expires
    )
    UPDATE deposit d SET status = CASE WHEN due.expires THEN 'expired' ELSE d.status END,
      due_at = CASE WHEN due.expires AND d.test_payment = 'late' THEN d.expires_at + interval '1 second' END,
      version = d.version + 1, changed_at = account_now(d.partner_id, d.mode)
    FROM due WHERE d.id = due.id AND d.partner_id = ${partnerId} AND d.mode = ${mode}
    RETURNING ${columnList('deposit', DEPOSIT_COLUMNS, 'd')}, due.expires, due.clock`,
);

// Written out, because it reads deposits of several accounts in turn. It goes no further than the accounts
// that it finds.
const due = readStatement(
  (
    _,
    { after, except, limit }: { after: string; except: readonly string[]; limit: number },
  ) => sql<AccountDeposits>`
    WITH RECURSIVE ${followingAccounts({
      table: 'deposit',
      account: ['partner_id'],
      isQueued: sql`due_at IS NOT NULL`,
      after: sql`${after}`,
    })}, found AS MATERIALIZED (
      SELECT a.partner_id, d.ids
      FROM ${accountsNow(sql`SELECT partner_id, 'test' AS mode FROM following
        WHERE partner_id || '/test' <> ALL (${except}::text[])`)} a
        CROSS JOIN LATERAL (
          SELECT array_agg(o.id) AS ids FROM (
            SELECT t.id FROM deposit t
            WHERE t.due_at IS NOT NULL AND t.partner_id = a.partner_id AND t.due_at <= a.now
            ORDER BY t.due_at LIMIT ${sql.lit(MAX_AT_ONCE)}) o
          HAVING count(*) > 0) d
      LIMIT ${limit}
    )
    SELECT partner_id AS "partnerId", 'test' AS mode, ids AS "depositIds" FROM found ORDER BY partner_id`,
  { acrossTenants: 'queue' },
);
