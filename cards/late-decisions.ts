import { sql } from 'kysely';
import { Refusal } from '../domain/refusal.ts';
import { autocommitStatement, readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';
import type { LateDecision, LateKind, WhyNotBooked } from './late-answer-rules.ts';

/**
 * Records what an operator decided about an operation that the network contradicts our record of. To book a transfer is
 * left to a worker; to dismiss a contradiction takes effect at once.
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
      retry_after = CASE WHEN ${outcome} = 'dismissed' THEN 'infinity' ELSE '-infinity'::timestamptz END
    WHERE id = ${id}`,
);

/** The card of a transfer that an operator wants booked, which is locked before {@link lockLate}. */
export const findLateCard = readStatement((db, { id }: { id: string }) =>
  db.selectFrom('late_answer').select('card_id').where('id', '=', id),
);

/** Notes why an operation can't be booked, for the operator who decided it. */
export async function refuse(tx: Transactor, id: string, why: WhyNotBooked): Promise<false> {
  await refuseOne(tx, { id, why });
  return false;
}

const refusal = ({ id, why }: { id: string; why: WhyNotBooked }) => sql`
  UPDATE late_answer SET decision = decision || jsonb_build_object('refused', ${why}::text) WHERE id = ${id}`;
const refuseOne = writeStatement((_, values: { id: string; why: WhyNotBooked }) => refusal(values));
/** Notes that a transfer can't be booked because of an error of ours, for the operator who decided it. */
export const refuseBooking = autocommitStatement((_, values: { id: string; why: WhyNotBooked }) =>
  refusal(values),
);
