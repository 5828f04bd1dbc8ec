import { sql } from 'kysely';
import { readIdTime } from '../../crypto/new-id.ts';
import { TOPUP_COLUMNS } from '../../db/columns.ts';
import type { Orm } from '../../db/orm.ts';
import { autocommitStatement, type Transactor, writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { LateDecision, LateKind, WhyNotBooked } from '../../domain/late-answer.ts';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { readCardBalance } from '../../ledger/balances.ts';
import type { CardRow } from '../../resources/card.ts';
import type { TopUpRow } from '../../resources/topup.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';
import { lockAnyCard } from '../card-status/lock-card.ts';
import { Refusal } from '../refusal.ts';
import { newEvent } from '../webhooks/new-event.ts';
import { loadedTopUp, topUpFunding, topUpOutcome } from './end-topup.ts';
import { fundingPosting } from './funding-posting.ts';

/**
 * Records what an operator decided about an operation that the network contradicts our record of. To book a top-up or a
 * withdrawal is left to a worker; to dismiss a contradiction takes effect at once.
 * @throws Refusal if there is no contradiction, or none of that kind
 */
export function decideContradiction(
  { orm, actor }: Operator,
  decision: { kind: LateKind; id: string; outcome: LateDecision['outcome']; reason: string },
): Promise<void> {
  const { kind, id, outcome, reason } = decision;
  return transaction(orm, async (tx) => {
    const [late] = await lockLate(tx, { id });
    if (late?.said == null || late.kind !== kind || late.decision?.outcome === 'dismissed') {
      throw new Refusal(
        `The card network does not contradict our record of ${id}: there is nothing to ${outcome === 'booked' ? 'book' : 'dismiss'}.`,
      );
    }
    if (outcome === 'booked' && (late.said === 'no' || late.card_id === null)) {
      throw new Refusal(
        late.said === 'no'
          ? `The card network says that it has not carried out ${id}: there is nothing to book.`
          : `Our record of ${id} does not have its card and amount: correct the balance with "operator partner adjust", then dismiss it.`,
      );
    }
    await decide(tx, { id, outcome });
    const { partner_id: partnerId, card_id: cardId } = late;
    const detail = {
      partnerId,
      mode: 'live',
      cardId: kind === 'card' ? undefined : cardId,
      said: late.said,
      reason,
    };
    recordAudit(tx, {
      actor,
      action: `${kind}.${outcome === 'booked' ? 'book' : 'dismiss'}`,
      subject: id,
      detail,
    });
  });
}

/** Locks what the network said about an operation that has ended. Its card and its row are locked before it. */
export const lockLate = writeStatement((db, { id }: { id: string }) =>
  db
    .selectFrom('late_answer')
    .select(['kind', 'said', 'partner_id', 'card_id', 'amount_cents', 'fees', 'decision'])
    .where('id', '=', id)
    .forUpdate(),
);

const decide = writeStatement(
  (_, { id, outcome }: { id: string; outcome: LateDecision['outcome'] }) => sql`
    UPDATE late_answer SET decision = jsonb_build_object('outcome', ${outcome}::text),
      look_up_after = CASE WHEN ${outcome} = 'dismissed' THEN 'infinity' ELSE '-infinity'::timestamptz END
    WHERE id = ${id}`,
);

/**
 * Books a top-up that failed by our record, and that the network has carried out, as an operator decided: the money is debited
 * now, the row becomes `succeeded`, and an event says so. If it can't be booked, the decision says why.
 * @returns whether it was booked
 */
export function bookTopUp(orm: Orm, id: string): Promise<boolean> {
  return transaction(orm, async (tx) => {
    const [found] = await lockLateTopUpCard(tx, { id });
    const card = found?.card_id == null ? undefined : await lockAnyCard(tx, found.card_id);
    const [row] = await lockTopUp(tx, { id });
    const [late] = await lockLate(tx, { id });
    if (late?.said !== 'yes' || late.decision?.outcome !== 'booked' || late.decision.refused !== undefined)
      return false;
    if (card === undefined || card.status === 'blocked' || card.status === 'failed') {
      return refuse(tx, id, 'card_closed');
    }
    const failed: TopUpRow = row ?? {
      id,
      partner_id: card.partner_id,
      mode: 'live',
      card_id: card.id,
      status: 'failed',
      failure_code: 'provider_declined',
      amount_cents: late.amount_cents ?? '',
      fees: late.fees ?? [],
      card_balance_cents: null,
      overdue_since: null,
      created_at: readIdTime(id).toISOString(),
      completed_at: null,
    };
    const tenant = { partnerId: card.partner_id, mode: card.mode };
    const balance = await readCardBalance(tx, tenant, card.id);
    const booked = { ...loadedTopUp(failed, balance, new Date()), failure_code: null };
    const posting = fundingPosting(topUpFunding(booked), 'single');
    // Under the id of the top-up's hold, which was released: so it is booked at most once.
    const transfers = posting.transfers.map((transfer) => ({
      ...transfer,
      step: `booked:${transfer.step}`,
    }));
    const { outcome } = await applyPosting(tx, { ...posting, transfers });
    if (outcome === 'insufficient_funds') return refuse(tx, id, outcome);
    await write(tx, {
      ...booked,
      fees: JSON.stringify(booked.fees),
      ...bookedEvent(booked, card, balance.heldCents),
    });
    return true;
  });
}

function bookedEvent(booked: TopUpRow, card: CardRow, heldCents: number) {
  const { type, mode, data } = topUpOutcome(booked, card, heldCents);
  const { id, created, body } = newEvent({ type, mode, data, clock: null });
  return { eventId: id, eventType: type, eventBody: body, eventCreatedAt: created };
}

/** Notes why an operation can't be booked, for the operator who decided it. */
export async function refuse(tx: Transactor, id: string, why: WhyNotBooked): Promise<false> {
  await refuseOne(tx, { id, why });
  return false;
}

const refusal = ({ id, why }: { id: string; why: WhyNotBooked }) => sql`
  UPDATE late_answer SET decision = decision || jsonb_build_object('refused', ${why}::text) WHERE id = ${id}`;
const refuseOne = writeStatement((_, values: { id: string; why: WhyNotBooked }) => refusal(values));
/** Notes that a top-up can't be booked because of an error of ours, for the operator who decided it. */
export const refuseBooking = autocommitStatement((_, values: { id: string; why: WhyNotBooked }) =>
  refusal(values),
);

const lockLateTopUpCard = writeStatement((db, { id }: { id: string }) =>
  db.selectFrom('late_answer').select('card_id').where('id', '=', id).where('kind', '=', 'topup'),
);

const lockTopUp = writeStatement(
  (db, { id }: { id: string }) =>
    db
      .selectFrom('topup')
      .select([...TOPUP_COLUMNS])
      .where('id', '=', id)
      .forNoKeyUpdate(),
  { acrossTenants: 'operator' },
);

type Booked = Omit<TopUpRow, 'fees'> & { fees: string } & ReturnType<typeof bookedEvent>;

/** Writes the row, which is new if it had been deleted with a refusal, and the event. Nothing is left to wait for. */
const write = writeStatement(
  (_, values: Booked) => sql`
    WITH done AS (
      INSERT INTO topup AS t (id, partner_id, mode, card_id, status, amount_cents, fees, card_balance_cents, created_at, completed_at)
      VALUES (${values.id}, ${values.partner_id}, ${values.mode}, ${values.card_id}, ${values.status}, ${values.amount_cents},
        ${values.fees}::jsonb, ${values.card_balance_cents}, ${values.created_at}, ${values.completed_at})
      ON CONFLICT (id) DO UPDATE SET status = excluded.status, failure_code = NULL,
        card_balance_cents = excluded.card_balance_cents, completed_at = excluded.completed_at
      RETURNING partner_id, mode, card_id
    ), reported AS (
      INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
      SELECT ${values.eventId}, partner_id, mode, ${values.eventType}, card_id, ${values.eventBody},
        ${values.eventCreatedAt}::timestamptz FROM done
    )
    DELETE FROM late_answer WHERE id = ${values.id}`,
  { acrossTenants: 'operator' },
);
