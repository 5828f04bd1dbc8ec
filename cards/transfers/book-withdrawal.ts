import { sql } from 'kysely';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { readCardBalance } from '../../ledger/balances.ts';
import { readIdTime } from '../../platform/crypto/new-id.ts';
import { WITHDRAWAL_COLUMNS } from '../../platform/db/columns.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { insertEvents, newEvent } from '../../requests/event.ts';
import { findLateCard, lockLate, refuse } from '../late-answers.ts';
import { lockAnyCard } from '../lock-card.ts';
import { withdrawalOutcome } from './end-withdrawal.ts';
import type { WithdrawalRow } from './withdrawal-resource.ts';

/**
 * Books a withdrawal that failed by our record, and that the network has carried out, as an operator decided: the money moves
 * from the card to the prepaid balance now, the row becomes `succeeded`, and an event says so. If it can't be booked, the
 * decision says why.
 * @returns whether it was booked
 */
export function bookWithdrawal(orm: Orm, id: string): Promise<boolean> {
  return transaction(orm, async (tx) => {
    const [found] = await findLateCard(tx, { id, kind: 'withdrawal' });
    const card = found?.card_id == null ? undefined : await lockAnyCard(tx, found.card_id);
    const [row] = await lockWithdrawal(tx, { id });
    const [late] = await lockLate(tx, { id });
    if (late?.said !== 'yes' || late.decision?.outcome !== 'booked') return false;
    if (late.decision.refused !== undefined) return false;
    if (card === undefined || card.status === 'blocked' || card.status === 'failed') {
      return refuse(tx, id, 'card_closed');
    }
    const amountCents = Number(row?.amount_cents ?? late.amount_cents);
    const { outcome: moved } = await applyPosting(tx, {
      // Under the id of the withdrawal's hold, which was released: so it is booked at most once.
      operationId: `withdrawal/${id}`,
      partnerId: card.partner_id,
      mode: card.mode,
      transfers: [
        {
          step: 'booked:withdrawal',
          code: 'withdrawal',
          phase: 'single',
          debit: { cardId: card.id },
          credit: 'prepaid',
          amountCents,
        },
      ],
    });
    if (moved === 'insufficient_funds') return refuse(tx, id, moved);
    const balance = await readCardBalance(tx, { partnerId: card.partner_id, mode: card.mode }, card.id);
    const booked: WithdrawalRow = {
      id,
      partner_id: card.partner_id,
      mode: card.mode,
      card_id: card.id,
      status: 'succeeded',
      failure_code: null,
      amount_cents: String(amountCents),
      card_balance_cents: String(balance.balanceCents),
      overdue_since: null,
      created_at: row?.created_at ?? readIdTime(id).toISOString(),
      completed_at: new Date().toISOString(),
    };
    const event = newEvent({ ...withdrawalOutcome(booked, card, balance), clock: null });
    await write(tx, { ...booked, event: JSON.stringify([event]) });
    return true;
  });
}

const lockWithdrawal = writeStatement(
  (db, { id }: { id: string }) =>
    db.selectFrom('withdrawal').select(WITHDRAWAL_COLUMNS).where('id', '=', id).forNoKeyUpdate(),
  { acrossTenants: 'operator' },
);

type Booked = WithdrawalRow & { event: string };

/** Writes the row, which is new if it had been deleted with a refusal, and the event. Nothing is left to wait for. */
const write = writeStatement(
  (_, values: Booked) => sql`
    WITH done AS (
      INSERT INTO withdrawal AS w (id, partner_id, mode, card_id, status, amount_cents, card_balance_cents, created_at,
        completed_at)
      VALUES (${values.id}, ${values.partner_id}, ${values.mode}, ${values.card_id}, ${values.status},
        ${values.amount_cents}, ${values.card_balance_cents}, ${values.created_at}, ${values.completed_at})
      ON CONFLICT (id) DO UPDATE SET status = excluded.status, failure_code = NULL,
        card_balance_cents = excluded.card_balance_cents, completed_at = excluded.completed_at
      RETURNING partner_id, mode
    ), reported AS (
      ${insertEvents(values.event, sql`done`)}
    )
    DELETE FROM late_answer WHERE id = ${values.id}`,
  { acrossTenants: 'operator' },
);
