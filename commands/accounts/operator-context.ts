import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../crypto/new-id.ts';
import { AuditEntryEntity } from '../../db/entities/accounts.ts';
import type { CommandContext } from '../command-context.ts';

/** What an operator's command works with, and who gives it. */
export interface OperatorContext extends CommandContext {
  /** Who is recorded as having made the change. */
  actor: string;
}

/** What most of them need of it: only making a key takes the key ring. */
export type Operator = Pick<OperatorContext, 'orm' | 'actor'>;

/**
 * Records a change, in its transaction (operations.md: who, when, what).
 * @param subject the id of what was changed
 * @param detail never a secret, a name of a cardholder or an e-mail address
 */
export function recordAudit(
  tx: EntityManager,
  actor: string,
  action: string,
  subject: string,
  detail: Record<string, unknown>,
): void {
  tx.persist(
    tx.create(AuditEntryEntity, { id: newId('aud'), actor, action, subject, detail, at: new Date() }),
  );
}
