import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';

export interface AuditResource {
  id: string;
  object: 'audit_entry';
  at: string;
  /** An operator, or the partner and the API key of a reveal. */
  actor: string;
  action: string;
  /** The id of what was changed, or of the card that was revealed. */
  subject: string;
  detail: Record<string, unknown>;
}

/**
 * Operators' changes and partners' reveals, newest first. A reveal is there whether the network then answered or not.
 * @param since the oldest that counts; null: all there are.
 */
export async function readAudit(orm: Orm, since: Date | null): Promise<AuditResource[]> {
  const entries = await newestSince(orm.em.fork(), { since: since?.toISOString() ?? '-infinity' });
  return entries.map(({ id, at, actor, action, subject, detail }) => ({
    id,
    object: 'audit_entry',
    at: new Date(at).toISOString(),
    actor,
    action,
    subject,
    detail,
  }));
}

const newestSince = readStatement((db, { since }: { since: string }) =>
  db
    .selectFrom('audit_entry')
    .select(['id', 'at', 'actor', 'action', 'subject', 'detail'])
    .where('at', '>=', since)
    .unionAll(
      db
        .selectFrom('card_reveal')
        .select(({ eb, fn, ref }) => [
          'id',
          'created_at as at',
          eb(eb('partner_id', '||', sql.lit('/')), '||', ref('api_key_id')).as('actor'),
          sql.lit<string>('card.reveal').as('action'),
          'card_id as subject',
          fn<Record<string, unknown>>('jsonb_build_object', [
            sql.lit('mode'),
            'mode',
            sql.lit('request_id'),
            'request_id',
          ]).as('detail'),
        ])
        .where('created_at', '>=', since),
    )
    .orderBy('at', 'desc')
    .orderBy('id', 'desc'),
);
