import type { EntityManager } from '@mikro-orm/postgresql';
import type { Tenant } from '../domain/mode.ts';
import { newId } from '../platform/crypto/new-id.ts';
import type { CommandContext } from './command-context.ts';
import { AuditEntryEntity } from './tables.ts';

/** The context of an operator's command. */
export interface OperatorContext extends CommandContext {
  /** Recorded as the author of the change. */
  actor: string;
}

/** Who a change is recorded as: an operator, or a partner's key with its request. */
export interface Author {
  actor: string;
  request?: { requestId: string; clientAddress: string };
}

/** The context without the key ring, which only commands about keys and secrets need. */
export type Operator = Pick<OperatorContext, 'orm' | 'actor'>;

interface AuditedChange {
  actor: string;
  action: string;
  /** The id of what was changed. */
  subject: string;
  /** Must not contain a secret, a cardholder's name or an email address. */
  detail: Record<string, unknown>;
}

/** Records a change in the change's own transaction (docs/operator.md, "Who did it"). */
export function recordAudit(tx: EntityManager, change: AuditedChange): void {
  tx.persist(tx.create(AuditEntryEntity, { id: newId('aud'), ...change, at: new Date() }));
}

/** Who asks: a key of the account, and the request for the audit log. */
export interface AskingKey extends Tenant {
  keyId: string;
  requestId: string;
  clientAddress: string;
}

/** The author of a partner's change is the key, as in the record of reveals. */
export const authorOf = ({ partnerId, keyId, requestId, clientAddress }: AskingKey): Author => ({
  actor: `${partnerId}/${keyId}`,
  request: { requestId, clientAddress },
});
