import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';

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
  const entries = await query<Omit<AuditResource, 'object'>>(
    orm.em.fork(),
    `SELECT id, at, actor, action, subject, detail FROM audit_entry WHERE at >= $1
     UNION ALL
     SELECT id, created_at, partner_id || '/' || api_key_id, 'card.reveal', card_id,
       jsonb_build_object('mode', mode, 'request_id', request_id)
     FROM card_reveal WHERE created_at >= $1
     ORDER BY at DESC, id DESC`,
    [since ?? '-infinity'],
  );
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
