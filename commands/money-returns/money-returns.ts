import { sql } from 'kysely';
import { newId } from '../../crypto/new-id.ts';
import type { Orm } from '../../db/orm.ts';
import { autocommitStatement, type Transactor, writeStatement } from '../../db/sql.ts';
import type { Row } from '../../db/tables.ts';
import { transaction } from '../../db/transaction.ts';
import type { ReturnAnswer } from '../../domain/card-network.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';
import { Refusal, unknownId } from '../refusal.ts';

// Money that was released from a blocked live card, and that the card network has to take back from the card's account there. The
// ledger's posting writes the row (docs/decisions/card-networks.md); a worker asks the network until it has done so.

/** How long nobody else asks about a return that has been taken. */
const LEASE_MS = 60_000;
const MAX_PAUSE_MS = 600_000;

/** A return that is due. */
export interface DueReturn {
  id: string;
  token: string;
  network_card_id: string;
  amount_cents: string;
  /** This one included. */
  attempts: number;
}

/** Takes returns that are due, of cards whose id at the network is known. Nobody else takes them for a minute. */
export const takeDueReturns = autocommitStatement(
  (_, { limit }: { limit: number }) => sql<DueReturn>`
    UPDATE money_return m
    SET attempts = m.attempts + 1, retry_after = now() + ${sql.lit(LEASE_MS)} * interval '1 millisecond'
    FROM (
      SELECT r.id, c.network_card_id FROM money_return r JOIN card c ON c.id = r.card_id
      WHERE r.status = 'pending' AND r.retry_after < now() AND c.network_card_id IS NOT NULL
      ORDER BY r.retry_after, r.id LIMIT ${limit} FOR NO KEY UPDATE OF r SKIP LOCKED
    ) due
    WHERE m.id = due.id RETURNING m.id, m.token, due.network_card_id, m.amount_cents, m.attempts`,
  { acrossTenants: 'queue' },
);

/**
 * Records what the network says about a return.
 * @param answer null if it gave no answer
 */
export async function recordReturn(
  orm: Orm,
  { id, token, attempts }: DueReturn,
  answer: ReturnAnswer | null,
): Promise<void> {
  if (answer?.status === 'succeeded') return void (await succeed(orm, { id, token }));
  if (answer?.status === 'refused')
    return void (await refuse(orm, { id, token, reason: answer.reason.slice(0, 200) }));
  const pauseMs = Math.min(1_000 * 2 ** Math.min(attempts, 20), MAX_PAUSE_MS);
  await pause(orm, { id, attempts, pauseMs });
}

// Each says which token was asked with: since then, an operator may have given it another.
const succeed = autocommitStatement(
  (db, { id, token }: { id: string; token: string }) =>
    db
      .updateTable('money_return')
      .set({ status: 'succeeded', reason: null, ended_at: sql`now()` })
      .where('id', '=', id)
      .where('token', '=', token)
      .where('status', 'in', ['pending', 'refused']),
  { acrossTenants: 'id' },
);

const refuse = autocommitStatement(
  (db, { id, token, reason }: { id: string; token: string; reason: string }) =>
    db
      .updateTable('money_return')
      .set({ status: 'refused', reason })
      .where('id', '=', id)
      .where('token', '=', token)
      .where('status', '=', sql.lit<'pending'>('pending')),
  { acrossTenants: 'id' },
);

const pause = autocommitStatement(
  (db, { id, attempts, pauseMs }: { id: string; attempts: number; pauseMs: number }) =>
    db
      .updateTable('money_return')
      .set({ retry_after: sql`now() + ${pauseMs} * interval '1 millisecond'` })
      .where('id', '=', id)
      .where('attempts', '=', attempts)
      .where('status', '=', sql.lit<'pending'>('pending')),
  { acrossTenants: 'id' },
);

/**
 * Asks the network again for a return, with a new token: an operator has made sure that it did not act on the last one.
 * @throws Refusal if it has ended
 */
export function retryReturn({ orm, actor }: Operator, id: string, reason: string): Promise<void> {
  return transaction(orm, async (tx) => {
    const known = await lockUnfinished(tx, id);
    const token = newId('ret');
    await askAgain(tx, { id, token });
    const detail = {
      cardId: known.card_id,
      amountCents: Number(known.amount_cents),
      lastToken: known.token,
      token,
      reason,
    };
    recordAudit(tx, { actor, action: 'money-return.retry', subject: id, detail });
  });
}

/**
 * Records an operator's decision that a return needs nothing more: it was made by hand, or there is nothing to return.
 * @throws Refusal if it has ended
 */
export function dismissReturn({ orm, actor }: Operator, id: string, reason: string): Promise<void> {
  return transaction(orm, async (tx) => {
    const known = await lockUnfinished(tx, id);
    await dismiss(tx, { id });
    const detail = {
      cardId: known.card_id,
      amountCents: Number(known.amount_cents),
      token: known.token,
      reason,
    };
    recordAudit(tx, { actor, action: 'money-return.dismiss', subject: id, detail });
  });
}

type KnownReturn = Row<'money_return', 'card_id' | 'amount_cents' | 'token' | 'status'>;

async function lockUnfinished(tx: Transactor, id: string): Promise<KnownReturn> {
  const [known] = await lock(tx, { id });
  if (known === undefined) throw unknownId('ret', id, 'run "operator money-return list"');
  if (known.status === 'succeeded' || known.status === 'dismissed') {
    throw new Refusal(`${id} is ${known.status}; nothing was changed.`);
  }
  return known;
}

const lock = writeStatement(
  (db, { id }: { id: string }) =>
    db
      .selectFrom('money_return')
      .select(['card_id', 'amount_cents', 'token', 'status'])
      .where('id', '=', id)
      .forNoKeyUpdate(),
  { acrossTenants: 'operator' },
);

const askAgain = writeStatement(
  (db, { id, token }: { id: string; token: string }) =>
    db
      .updateTable('money_return')
      .set({ token, status: 'pending', reason: null, retry_after: sql`'-infinity'` })
      .where('id', '=', id),
  { acrossTenants: 'operator' },
);

const dismiss = writeStatement(
  (db, { id }: { id: string }) =>
    db
      .updateTable('money_return')
      .set({ status: 'dismissed', reason: null, ended_at: sql`clock_timestamp()` })
      .where('id', '=', id),
  { acrossTenants: 'operator' },
);
