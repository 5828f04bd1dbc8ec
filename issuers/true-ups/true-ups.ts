import { sql } from 'kysely';
import { Refusal, unknownId } from '../../domain/refusal.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import type { Row } from '../../platform/db/entities.ts';
import { followingAccounts } from '../../platform/db/following-accounts.ts';
import { hasPassed, passedTimes } from '../../platform/db/has-passed.ts';
import { backoffMs } from '../../platform/db/leased-queue.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { autocommitStatement, type Transactor, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../../requests/operator-context.ts';
import type { TrueUpAnswer, TrueUpDirection } from '../card-network.ts';

// What the card network has to move so that a card's account there has what our ledger says. The ledger's
// posting writes the row (docs/decisions/card-networks.md); a worker asks the network until it has done so.

/** How long nobody else asks about a true-up that has been taken. */
const LEASE_MS = 60_000;
const MAX_PAUSE_MS = 600_000;

/** A true-up that is due. */
export interface DueTrueUp {
  id: string;
  direction: TrueUpDirection;
  token: string;
  network_card_id: string;
  amount_cents: string;
  /** Why the network did not do it when it was asked last; null if it has not said no. */
  reason: string | null;
  /** This one included. */
  attempts: number;
}

const WITH_PENDING = {
  table: 'true_up',
  account: ['partner_id', 'mode'],
  isQueued: sql`status = 'pending'`,
  after: sql`'', ''`,
} as const;

/**
 * Takes true-ups that are due, of cards whose id at the network is known. Nobody else takes them for a minute.
 * Accounts take turns, so that however many one account has, another's are taken as soon, and of each account what
 * goes to cards comes first: until then, the network declines what these cards pay. What comes from a card waits for
 * what goes to it, because the account may lack the money until then.
 */
export const takeDueTrueUps = autocommitStatement(
  (_, { limit }: { limit: number }) => sql<DueTrueUp>`
    WITH RECURSIVE ${followingAccounts(WITH_PENDING)}, due AS MATERIALIZED (
      SELECT d.id FROM following f CROSS JOIN LATERAL (
        SELECT n.id, n.direction, row_number() OVER (ORDER BY n.direction DESC, n.retry_after, n.id) AS turn
        FROM (VALUES ('to_card'), ('from_card')) way (direction)
          CROSS JOIN ${passedTimes(MAX_PAUSE_MS)} CROSS JOIN LATERAL (
          SELECT q.id, q.direction, q.retry_after FROM true_up q
          WHERE q.partner_id = f.partner_id AND q.mode = f.mode AND q.direction = way.direction
            AND q.status = 'pending' AND q.retry_after BETWEEN time.earliest AND time.latest
            AND (q.direction = 'to_card' OR NOT EXISTS (
              SELECT FROM true_up o WHERE o.card_id = q.card_id AND o.direction = 'to_card' AND o.status = 'pending'))
            AND EXISTS (SELECT FROM card c WHERE c.id = q.card_id AND c.network_card_id IS NOT NULL)
          ORDER BY q.retry_after, q.id LIMIT ${limit}) n) d
      ORDER BY d.turn, d.direction DESC, random() LIMIT ${limit}
    ), free AS MATERIALIZED (
      SELECT q.id FROM true_up q
      WHERE q.id IN (SELECT id FROM due) AND q.status = 'pending'
        AND ${hasPassed('q.retry_after', MAX_PAUSE_MS)}
      FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE true_up q
    SET attempts = q.attempts + 1, retry_after = now() + ${sql.lit(LEASE_MS)} * interval '1 millisecond'
    FROM free WHERE q.id = free.id
    RETURNING q.id, q.direction, q.token, q.amount_cents, q.reason, q.attempts,
      (SELECT c.network_card_id FROM card c WHERE c.id = q.card_id) AS network_card_id`,
  { acrossTenants: 'queue' },
);

/**
 * Records what the network says about a true-up.
 * @param answer null if it gave no answer
 */
export async function recordTrueUp(
  orm: Orm,
  { id, token, attempts, reason }: DueTrueUp,
  answer: TrueUpAnswer | null,
): Promise<void> {
  if (answer?.status === 'succeeded') return void (await succeed(orm, { id, token }));
  if (answer?.status === 'refused') {
    // What the network said as long as it was asked tells more.
    const why = answer.reason === 'key_expired' ? (reason ?? answer.reason) : answer.reason;
    return void (await refuse(orm, { id, token, reason: why.slice(0, 200) }));
  }
  const pauseMs = backoffMs(attempts, MAX_PAUSE_MS);
  const said = answer?.status === 'not_yet' ? answer.reason.slice(0, 200) : null;
  await pause(orm, { id, attempts, pauseMs, reason: answer === null ? reason : said });
}

// Each says which token was asked with: since then, an operator may have given it another.
const succeed = autocommitStatement(
  (db, { id, token }: { id: string; token: string }) =>
    db
      .updateTable('true_up')
      .set({ status: 'succeeded', reason: null, ended_at: sql`now()` })
      .where('id', '=', id)
      .where('token', '=', token)
      .where('status', 'in', ['pending', 'refused']),
  { acrossTenants: 'id' },
);

const refuse = autocommitStatement(
  (db, { id, token, reason }: { id: string; token: string; reason: string }) =>
    db
      .updateTable('true_up')
      .set({ status: 'refused', reason })
      .where('id', '=', id)
      .where('token', '=', token)
      .where('status', '=', sql.lit<'pending'>('pending')),
  { acrossTenants: 'id' },
);

const pause = autocommitStatement(
  (
    db,
    { id, attempts, pauseMs, reason }: Pick<DueTrueUp, 'id' | 'attempts' | 'reason'> & { pauseMs: number },
  ) =>
    db
      .updateTable('true_up')
      .set({ reason, retry_after: sql`now() + ${pauseMs} * interval '1 millisecond'` })
      .where('id', '=', id)
      .where('attempts', '=', attempts)
      .where('status', '=', sql.lit<'pending'>('pending')),
  { acrossTenants: 'id' },
);

/**
 * Asks the network again for a true-up. One that was refused gets a new token: an operator has made sure that
 * the network did not act on the last one. A pending one keeps its token, under which a worker may be asking
 * right now.
 * @throws Refusal if it has ended
 */
export function retryTrueUp({ orm, actor }: Operator, id: string, reason: string): Promise<void> {
  return transaction(orm, async (tx) => {
    const known = await lockUnfinished(tx, id);
    const token = known.status === 'refused' ? newId('tru') : known.token;
    await askAgain(tx, { id, token });
    const detail = {
      cardId: known.card_id,
      amountCents: Number(known.amount_cents),
      lastToken: known.token,
      token,
      reason,
    };
    recordAudit(tx, { actor, action: 'true-up.retry', subject: id, detail });
  });
}

/**
 * Records an operator's decision that a true-up needs nothing more: it was made by hand, or there is nothing
 * to move.
 * @throws Refusal if it has ended
 */
export function dismissTrueUp({ orm, actor }: Operator, id: string, reason: string): Promise<void> {
  return transaction(orm, async (tx) => {
    const known = await lockUnfinished(tx, id);
    await dismiss(tx, { id });
    const detail = {
      cardId: known.card_id,
      amountCents: Number(known.amount_cents),
      token: known.token,
      reason,
    };
    recordAudit(tx, { actor, action: 'true-up.dismiss', subject: id, detail });
  });
}

type KnownTrueUp = Row<'true_up', 'card_id' | 'amount_cents' | 'token' | 'status'>;

async function lockUnfinished(tx: Transactor, id: string): Promise<KnownTrueUp> {
  const [known] = await lock(tx, { id });
  if (known === undefined) throw unknownTrueUp(id);
  if (known.status === 'succeeded' || known.status === 'dismissed') {
    throw new Refusal(`${id} is ${known.status}; nothing was changed.`);
  }
  return known;
}

export const unknownTrueUp = (id: string): Refusal => unknownId('tru', id, 'run "operator true-up list"');

const lock = writeStatement(
  (db, { id }: { id: string }) =>
    db
      .selectFrom('true_up')
      .select(['card_id', 'amount_cents', 'token', 'status'])
      .where('id', '=', id)
      .forNoKeyUpdate(),
  { acrossTenants: 'operator' },
);

const askAgain = writeStatement(
  (db, { id, token }: { id: string; token: string }) =>
    db
      .updateTable('true_up')
      .set({
        token,
        status: 'pending',
        reason: sql`CASE status WHEN 'pending' THEN reason END`,
        retry_after: sql`'-infinity'`,
      })
      .where('id', '=', id),
  { acrossTenants: 'operator' },
);

const dismiss = writeStatement(
  (db, { id }: { id: string }) =>
    db
      .updateTable('true_up')
      .set({ status: 'dismissed', reason: null, ended_at: sql`clock_timestamp()` })
      .where('id', '=', id),
  { acrossTenants: 'operator' },
);
