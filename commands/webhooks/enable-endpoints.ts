import { sql } from 'kysely';
import { anyOf, type Transactor, writeStatement } from '../../db/sql.ts';
import type { Mode } from '../../domain/mode.ts';

/**
 * Enables an account's endpoints, in the caller's transaction, which holds the account's lock, and hands what was parked
 * to the relay (decisions.md, "Rules").
 */
export async function enableEndpoints(
  tx: Transactor,
  partnerId: string,
  modes: readonly Mode[],
): Promise<void> {
  await enable(tx, { partnerId, modes });
  await unpark(tx, { partnerId, modes });
}

interface Endpoints {
  partnerId: string;
  modes: readonly Mode[];
}

const enable = writeStatement((db, { partnerId, modes }: Endpoints) =>
  db
    .updateTable('webhook_endpoint')
    .set({ status: 'enabled', disabled_reason: null })
    .where('partner_id', '=', partnerId)
    .where('mode', '=', anyOf(modes))
    .where('status', '=', 'disabled'),
);

const unpark = writeStatement((db, { partnerId, modes }: Endpoints) =>
  db
    .updateTable('delivery')
    .set(({ fn }) => ({
      status: 'pending',
      schedule_attempts: 0,
      lease_expires_at: '-infinity',
      next_attempt_at: fn<string>('clock_timestamp'),
    }))
    // In the text, so that the partial index of what waits can be used.
    .where('status', '=', sql.lit<'parked'>('parked'))
    .where('partner_id', '=', partnerId)
    .where('mode', 'in', ({ selectFrom }) =>
      selectFrom('webhook_endpoint')
        .select('mode')
        .where('partner_id', '=', partnerId)
        .where('mode', '=', anyOf(modes)),
    ),
);
