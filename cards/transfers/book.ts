import { sql } from 'kysely';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { readCardBalance } from '../../ledger/balances.ts';
import { readIdTime } from '../../platform/crypto/new-id.ts';
import { TRANSFER_COLUMNS } from '../../platform/db/columns.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { cte, withCtes, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { type AccountColumns, insertEvents, newEvent } from '../../requests/event.ts';
import { fundingPosting } from '../funding-posting.ts';
import { findLateCard, lockLate, refuse } from '../late-answers.ts';
import { lockAnyCard } from '../lock-card.ts';
import { releaseBalance } from '../release-balance.ts';
import type { TransferRow } from './resource.ts';
import { succeededTransfer, transferFunding, transferOutcome } from './row.ts';

/**
 * Books a transfer that failed by our record, and that the network has carried out, as an operator decided:
 * the money moves now, the row becomes `succeeded`, and an event says so. What was loaded on a card that is
 * blocked costs no fee, as nobody can spend it: it is released at once, and the network moves it back. If it
 * can't be booked, the decision says why.
 * @returns whether it was booked
 */
export function bookTransfer(orm: Orm, id: string): Promise<boolean> {
  return transaction(orm, async (tx) => {
    const [found] = await findLateCard(tx, { id });
    const card = found?.card_id == null ? undefined : await lockAnyCard(tx, found.card_id);
    const [row] = await lockTransfer(tx, { id });
    const [late] = await lockLate(tx, { id });
    if (late === undefined || late.kind === 'card' || late.said !== 'yes') return false;
    if (late.decision?.outcome !== 'booked' || late.decision.refused !== undefined) return false;
    const isBlocked = card?.status === 'blocked';
    if (card === undefined || card.status === 'failed' || (isBlocked && late.kind === 'withdrawal')) {
      return refuse(tx, id, 'card_closed');
    }
    const failed: TransferRow = row ?? {
      id,
      partner_id: card.partner_id,
      mode: 'live',
      card_id: card.id,
      direction: late.kind,
      status: 'failed',
      failure_code: 'provider_declined',
      amount_cents: late.amount_cents ?? '',
      fees: late.fees ?? [],
      card_balance_cents: null,
      overdue_since: null,
      created_at: readIdTime(id).toISOString(),
      completed_at: null,
    };
    const wanted = isBlocked ? { ...failed, fees: [] } : failed;
    const posting = fundingPosting(transferFunding(wanted), 'single');
    // Under the id of its hold, which was released: so it is booked at most once.
    const transfers = posting.transfers.map((transfer) => ({
      ...transfer,
      step: `booked:${transfer.step}`,
    }));
    const { outcome: moved } = await applyPosting(tx, { ...posting, transfers });
    if (moved === 'insufficient_funds') return refuse(tx, id, moved);
    if (isBlocked) await releaseBalance(tx, card, `booked:${id}`);
    const balance = await readCardBalance(tx, { partnerId: card.partner_id, mode: card.mode }, card.id);
    const booked = succeededTransfer(wanted, balance, new Date());
    const event = newEvent({ ...transferOutcome(booked, card, balance), clock: null });
    await write(tx, { id, row: JSON.stringify(booked), event: JSON.stringify([event]) });
    return true;
  });
}

const lockTransfer = writeStatement(
  (db, { id }: { id: string }) =>
    db.selectFrom('card_transfer').select(TRANSFER_COLUMNS).where('id', '=', id).forNoKeyUpdate(),
  { acrossTenants: 'operator' },
);

const COLUMNS = sql.join(TRANSFER_COLUMNS.map((column) => sql.ref(column)));

/**
 * Writes the row, which is new if it had been deleted with a refusal, and the event. What an operator decides
 * uses none of the account's limits. Nothing is left to wait for.
 */
const write = writeStatement(
  (_, values: { id: string; row: string; event: string }) => {
    const booked = cte(
      'booked',
      sql<AccountColumns>`
      INSERT INTO card_transfer (${COLUMNS})
      SELECT ${COLUMNS} FROM json_populate_record(NULL::card_transfer, ${values.row})
      ON CONFLICT (id) DO UPDATE SET status = excluded.status, failure_code = NULL, fees = excluded.fees,
        card_balance_cents = excluded.card_balance_cents, completed_at = excluded.completed_at, counted_on = NULL
      RETURNING partner_id, mode`,
    );
    const reported = cte('reported', insertEvents(values.event, booked.rows));
    return sql`${withCtes([booked, reported])} DELETE FROM late_answer WHERE id = ${values.id}`;
  },
  { acrossTenants: 'operator' },
);
