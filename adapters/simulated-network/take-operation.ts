import { query, type Sql } from '../../db/sql.ts';
import type { Behaviour } from './outcomes.ts';

export type OperationKind = 'card.issuance' | 'card.topup' | 'card.status';

export interface Operation {
  token: string;
  kind: OperationKind;
  /** How it is met if it is taken now. */
  behaviour: Behaviour;
  /** Everything that has to be the same when the token is used again; nothing personal. */
  request: object;
}

/**
 * `taken`: just now. `known`: by an earlier call. `refused`: not taken this time.
 * `conflict`: the token belongs to another request.
 */
export type Taking =
  | { status: 'taken' }
  | { status: 'known' }
  | { status: 'refused' }
  | { status: 'conflict' };

/** What the network answers to an operation it was asked for. */
export type Taken<Answer> =
  | { status: 'refused' }
  | { status: 'conflict' }
  | { status: 'answered'; answer: Answer; answerIsLost: boolean };

/**
 * Takes an operation once, however often and by however many at a time it is asked for: the row of its token is the
 * lock. Call it in a transaction, and write what the operation makes in the same one.
 */
export async function takeOperation(tx: Sql, operation: Operation): Promise<Taking> {
  const { behaviour } = operation;
  const [asked] = await query<{ attempts: number; taken: boolean }>(
    tx,
    `INSERT INTO simulated_network.operation AS o (token, kind, request) VALUES ($1, $2, $3)
     ON CONFLICT (token) DO UPDATE SET attempts = o.attempts + 1
       WHERE o.kind = excluded.kind AND o.request = excluded.request
     RETURNING attempts, taken_at IS NOT NULL AS taken`,
    [operation.token, operation.kind, JSON.stringify(operation.request)],
  );
  if (asked === undefined) return { status: 'conflict' };
  if (asked.taken) return { status: 'known' };
  if (asked.attempts <= behaviour.refusals) return { status: 'refused' };
  await query(
    tx,
    `WITH clock AS (SELECT clock_timestamp() AS now),
          taken AS (UPDATE simulated_network.operation SET outcome = $2, taken_at = clock.now,
                           completes_at = clock.now + $3::integer * interval '1 millisecond'
                      FROM clock WHERE token = $1 RETURNING token, completes_at)
     INSERT INTO simulated_network.callback (token, due_at)
     SELECT token, completes_at + delay_ms * interval '1 millisecond'
       FROM taken, unnest($4::integer[]) AS delay_ms`,
    [operation.token, behaviour.outcome, behaviour.completesAfterMs, [...behaviour.callbackDelaysMs]],
  );
  return { status: 'taken' };
}
