import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import { STATUS_CHANGES, type StatusChangeOperation } from '../../domain/card-status.ts';
import { STATUS_CHANGE_PATIENCE_MS } from '../../workflows/messages.ts';
import type { AttentionItem } from './attention-item.ts';

/** Cards with a freeze, unfreeze or block that takes too long; of several of one card the one the network is asked for. */
export async function readWaitingStatusChanges(orm: Orm): Promise<AttentionItem[]> {
  const rows = await waiting(orm.em.fork(), { patienceMs: STATUS_CHANGE_PATIENCE_MS });
  return rows.map(({ id, operation, asked, since }) => ({
    kind: 'card_status_change',
    id,
    since: new Date(since).toISOString(),
    reason: asked
      ? `the network has not confirmed that the card is ${STATUS_CHANGES[operation].participle}: check that it can be reached`
      : `the request to have the card ${STATUS_CHANGES[operation].participle} has not started: check that a worker is running`,
    command: `npm run operator -- card show ${id}`,
  }));
}

const OPERATIONS = Object.keys(STATUS_CHANGES) as StatusChangeOperation[];

const waiting = readStatement((db, { patienceMs }: { patienceMs: number }) =>
  db
    .selectFrom('idempotency_claim as c')
    .innerJoin('card as k', 'k.id', 'c.card_id')
    .distinctOn('k.id')
    .select(({ eb, ref }) => [
      'k.id',
      'c.operation',
      eb('k.status_change_claim_id', 'is not', null).as('asked'),
      sql<string>`${ref('c.created_at')} + ${patienceMs} * interval '1 millisecond'`.as('since'),
    ])
    .where('c.response_status', 'is', null)
    .where('c.operation', 'in', OPERATIONS)
    .where('c.created_at', '<', sql<string>`now() - ${patienceMs} * interval '1 millisecond'`)
    .orderBy('k.id')
    .orderBy(({ eb, ref }) => eb('c.id', 'is distinct from', ref('k.status_change_claim_id')))
    .orderBy('c.created_at')
    .$narrowType<{ operation: StatusChangeOperation }>(),
);
