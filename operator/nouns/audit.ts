import type { Command } from 'commander';
import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import { read, Since } from '../flag-values.ts';
import type { Verbs } from '../verbs.ts';

export function auditNoun(audit: Command, { session, verb, examples }: Verbs): void {
  audit
    .addHelpText('after', examples('audit list --since 24h'))
    .command('list')
    .description('changes by operators and reveals by partners, newest first')
    .option('--since <time>', 'only entries since then: 24h, 2026-11-20 or 2026-11-20T08:00:00Z', read(Since))
    .addHelpText(
      'after',
      examples('audit list --since 24h', 'audit list --since 2026-11-20T08:00:00Z --json'),
    )
    .action(
      verb(async ({ since }: { since?: Date }) => {
        const entries = await readAudit(await session.orm(), since ?? null);
        return {
          value: entries,
          columns: ['at', 'actor', 'action', 'subject', 'detail'],
          ...(entries.length === 0 && { note: 'Nothing was changed or revealed since then.' }),
        };
      }),
    );
}

interface AuditResource {
  id: string;
  object: 'audit_entry';
  at: string;
  /** An operator; for a reveal, the partner and its API key. */
  actor: string;
  action: string;
  /** The id of what was changed, or of the revealed card. */
  subject: string;
  detail: Record<string, unknown>;
}

/**
 * Operators' changes and partners' reveals, newest first. A reveal is listed even if the network then failed to answer.
 * @param since null: from the beginning
 */
async function readAudit(orm: Orm, since: Date | null): Promise<AuditResource[]> {
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
