import { sql } from 'kysely';
import { Refusal, unknownId } from '../../domain/refusal.ts';
import type { Row } from '../../platform/db/entities.ts';
import { type Transactor, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../../requests/operator-context.ts';

/**
 * Makes an event of the network due at once, also one that was dismissed.
 * @throws Refusal if it is done
 */
export function retryEvent({ orm, actor }: Operator, id: string): Promise<void> {
  return transaction(orm, async (tx) => {
    const event = await lockKnown(tx, id);
    if (event.status === 'done') throw new Refusal(`${id} is done: everything in it is booked.`);
    await makeDue(tx, { id });
    recordAudit(tx, {
      actor,
      action: 'network-event.retry',
      subject: id,
      detail: {
        network: event.network,
        networkEventId: event.event_id,
        wasDismissed: event.status === 'dismissed',
      },
    });
  });
}

/**
 * Records an operator's decision that an event of the network is not to be read.
 * @throws Refusal if it has ended
 */
export function dismissEvent({ orm, actor }: Operator, id: string, reason: string): Promise<void> {
  return transaction(orm, async (tx) => {
    const event = await lockKnown(tx, id);
    if (event.status !== 'waiting') throw new Refusal(`${id} is ${event.status}; nothing was changed.`);
    await dismiss(tx, { id });
    const detail = {
      network: event.network,
      networkEventId: event.event_id,
      whyWaiting: event.reason,
      reason,
    };
    recordAudit(tx, { actor, action: 'network-event.dismiss', subject: id, detail });
  });
}

type KnownEvent = Row<'network_event', 'network' | 'event_id' | 'status' | 'reason'>;

async function lockKnown(tx: Transactor, id: string): Promise<KnownEvent> {
  const [event] = await lock(tx, { id });
  if (event === undefined) throw unknownId('nevt', id, 'run "operator network-event list"');
  return event;
}

const lock = writeStatement((db, { id }: { id: string }) =>
  db
    .selectFrom('network_event')
    .select(['network', 'event_id', 'status', 'reason'])
    .where('id', '=', id)
    .forNoKeyUpdate(),
);

const makeDue = writeStatement((db, { id }: { id: string }) =>
  db
    .updateTable('network_event')
    .set({ status: 'waiting', ended_at: null, retry_after: sql`'-infinity'` })
    .where('id', '=', id),
);

const dismiss = writeStatement((db, { id }: { id: string }) =>
  db
    .updateTable('network_event')
    .set({ status: 'dismissed', ended_at: sql`clock_timestamp()` })
    .where('id', '=', id),
);
