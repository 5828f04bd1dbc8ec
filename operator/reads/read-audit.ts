import { AuditEntryEntity } from '../../db/entities/audit-entry.ts';
import type { Orm } from '../../db/orm.ts';

export interface AuditResource {
  id: string;
  object: 'audit_entry';
  at: string;
  actor: string;
  action: string;
  /** The id of what was changed. */
  subject: string;
  detail: Record<string, unknown>;
}

/** Newest first. @param since the oldest that counts; null: all there are. */
export async function readAudit(orm: Orm, since: Date | null): Promise<AuditResource[]> {
  const where = since === null ? {} : { at: { $gte: since } };
  const entries = await orm.em.fork().find(AuditEntryEntity, where, { orderBy: { at: 'desc', id: 'desc' } });
  return entries.map(({ id, at, actor, action, subject, detail }) => ({
    id,
    object: 'audit_entry',
    at: at.toISOString(),
    actor,
    action,
    subject,
    detail,
  }));
}
