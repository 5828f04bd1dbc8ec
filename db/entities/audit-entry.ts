import { defineEntity, type InferEntity, p } from '@mikro-orm/core';

/** Who changed what, when. Written in the transaction of the change. */
export const AuditEntryEntity = defineEntity({
  name: 'AuditEntry',
  tableName: 'audit_entry',
  properties: {
    id: p.string().primary(),
    at: p.datetime().onCreate(() => new Date()),
    actor: p.string(),
    action: p.string(),
    subject: p.string(),
    detail: p.json().$type<Record<string, unknown>>(),
  },
});
export type AuditEntry = InferEntity<typeof AuditEntryEntity>;
