import { sql } from 'kysely';
import { Refusal } from '../domain/refusal.ts';
import type { Row } from '../platform/db/entities.ts';
import { takeDue } from '../platform/db/leased-queue.ts';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement, readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';
import type { LateAnswer, LateDecision, LateKind, WhyNotBooked } from './late-answers-tables.ts';

const LONGEST_MS = 86_400_000;

/**
 * Has a worker look an operation up that has ended, because the network says that it has news of it. While it
 * is pending, its workflow asks the network. The row says which, not the workflow: that runs for a moment
 * longer than the operation.
 */
export const expectLateAnswer = autocommitStatement(
  (_, { kind, id }: { kind: LateKind; id: string }) => sql`
    INSERT INTO late_answer AS l (id, kind)
    SELECT ${id}, ${kind}
    WHERE NOT EXISTS (
        SELECT FROM card WHERE ${kind} = 'card' AND id = ${id} AND status = 'funding_pending')
      AND NOT EXISTS (
        SELECT FROM card_transfer WHERE direction = ${kind} AND id = ${id} AND status = 'pending')
    ON CONFLICT (id) DO UPDATE SET retry_after = least(l.retry_after, now())
      WHERE l.decision ->> 'outcome' IS DISTINCT FROM 'dismissed'`,
  { acrossTenants: 'network' },
);

/** What we ended without the network's word. Its row may be deleted with a refusal. */
type EndedByUs = Row<'late_answer', 'id' | 'kind' | 'partner_id' | 'card_id' | 'amount_cents' | 'fees'>;

/**
 * Has workers look operations up for 30 days that we have just ended without the network's word: an operator
 * decided them, or a block ended them. In the caller's transaction.
 */
export async function watchEnded(tx: Transactor, ended: readonly EndedByUs[]): Promise<void> {
  await watch(tx, { ended: JSON.stringify(ended) });
}

const watch = writeStatement(
  (_, { ended }: { ended: string }) => sql`
    INSERT INTO late_answer AS l (id, kind, partner_id, card_id, amount_cents, fees, retry_after)
    SELECT id, kind, partner_id, card_id, amount_cents, fees, now() + interval '1 minute'
    FROM json_populate_recordset(NULL::late_answer, ${ended})
    ON CONFLICT (id) DO UPDATE SET partner_id = excluded.partner_id, card_id = excluded.card_id,
      amount_cents = excluded.amount_cents, fees = excluded.fees`,
);

/**
 * Takes operations that are due to be looked up. Nobody else takes them for a while: a minute after the first
 * look-up, then twice as long each time, up to a day, or up to an hour once the network has contradicted our
 * record. Once an operator has dismissed the contradiction, they are never due.
 */
export const takeLateAnswers = autocommitStatement((_, { limit }: { limit: number }) =>
  takeDue('late_answer', {
    isWaiting: sql`q.retry_after < 'infinity'`,
    leaseMs: sql`least(60000::bigint * (1 << least(q.attempts, 11)),
      CASE WHEN q.contradicts_since IS NULL THEN ${sql.lit(LONGEST_MS)} ELSE 3600000 END)`,
    longestMs: LONGEST_MS,
    taken: sql<{ id: string; kind: LateKind }>`q.id, q.kind`,
    limit,
  }),
);

/**
 * Compares what the network says about an operation that has ended with our record. A contradiction is kept
 * for an operator; if the two agree, nothing is left to wait for.
 * @returns `contradicts` if they do; `booked`: an operator wants the transfer booked that the network has
 * carried out
 */
export function recordLateAnswer(
  orm: Orm,
  id: string,
  answer: LateAnswer,
  networkCardId: string | null,
): Promise<'contradicts' | 'booked' | null> {
  return transaction(orm, async (tx) => {
    const [late] = await lockAndCompare(tx, { id });
    if (late === undefined || late.is_dismissed) return null;
    if (late.recorded === null) {
      // It is test mode's, or its workflow asks the network itself.
      await forget(tx, { id });
      return null;
    }
    if (answer === 'yes' || answer === 'no') {
      if (answer === late.recorded) {
        await forget(tx, { id });
        return null;
      }
      await contradict(tx, { id, said: answer, networkCardId });
      return late.is_to_be_booked && answer === 'yes' ? 'booked' : 'contradicts';
    }
    // That the network never heard of it fits a failure, unless we ended it: a request may still be on its
    // way.
    const isOver = late.said === null && (late.is_old || (answer === 'unknown' && !late.by_us));
    if (isOver) await forget(tx, { id });
    if (late.said === null) return null;
    return late.is_to_be_booked && late.said === 'yes' ? 'booked' : 'contradicts';
  });
}

// A row that is gone was refused, so the record says no.
const lockAndCompare = writeStatement(
  (_, { id }: { id: string }) => sql<{
    said: 'yes' | 'no' | null;
    by_us: boolean;
    is_old: boolean;
    is_dismissed: boolean;
    is_to_be_booked: boolean;
    recorded: 'yes' | 'no' | null;
  }>`
    SELECT l.said, l.partner_id IS NOT NULL AS by_us, l.created_at < now() - interval '30 days' AS is_old,
      coalesce(l.decision ->> 'outcome' = 'dismissed', false) AS is_dismissed,
      coalesce(l.decision ->> 'outcome' = 'booked' AND NOT l.decision ? 'refused', false) AS is_to_be_booked,
      CASE
        WHEN 'test' IN (k.mode, t.mode) THEN NULL
        WHEN k.status = 'funding_pending' OR t.status = 'pending' THEN NULL
        WHEN k.status IN ('active', 'frozen', 'blocked') OR t.status = 'succeeded' THEN 'yes'
        ELSE 'no'
      END AS recorded
    FROM late_answer l
      LEFT JOIN card k ON l.kind = 'card' AND k.id = l.id
      LEFT JOIN card_transfer t ON t.direction = l.kind AND t.id = l.id
    WHERE l.id = ${id} FOR UPDATE OF l`,
  { acrossTenants: 'id' },
);

const forget = writeStatement((db, { id }: { id: string }) =>
  db.deleteFrom('late_answer').where('id', '=', id),
);

const contradict = writeStatement(
  (_, values: { id: string; said: 'yes' | 'no'; networkCardId: string | null }) => sql`
    UPDATE late_answer l SET said = ${values.said}, network_card_id = ${values.networkCardId},
      contradicts_since = coalesce(l.contradicts_since, now()),
      partner_id = coalesce(l.partner_id, t.partner_id, k.partner_id),
      card_id = coalesce(l.card_id, t.card_id, k.id),
      amount_cents = coalesce(l.amount_cents, t.amount_cents), fees = coalesce(l.fees, t.fees)
    FROM late_answer self LEFT JOIN card k ON self.kind = 'card' AND k.id = self.id
      LEFT JOIN card_transfer t ON t.direction = self.kind AND t.id = self.id
    WHERE l.id = ${values.id} AND self.id = l.id`,
  { acrossTenants: 'id' },
);

/**
 * Records what an operator decided about an operation that the network contradicts our record of. To book a
 * transfer is left to a worker; to dismiss a contradiction takes effect at once.
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
    const card = kind === 'card' ? {} : { cardId };
    const detail = { partnerId, mode: 'live', ...card, said: late.said, reason };
    const action = `${kind}.${outcome === 'booked' ? 'book' : 'dismiss'}`;
    recordAudit(tx, { actor, action, subject: id, detail });
  });
}

/**
 * Locks what the network said about an operation that has ended. Its card and its row are locked before it.
 */
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
