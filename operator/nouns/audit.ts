import type { Command } from 'commander';
import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import { Mode } from '../../domain/mode.ts';
import { read, Since, Text } from '../flag-values.ts';
import type { Verbs } from '../verbs.ts';

export function auditNoun(audit: Command, { session, verb, examples }: Verbs): void {
  audit
    .addHelpText('after', examples('audit list --since 24h'))
    .command('list')
    .description('changes by operators and reveals by partners, newest first')
    .option('--subject <id>', 'only entries about this: a card, a partner, an event, …', read(Text(200)))
    .option(
      '--actor <name>',
      'only entries by this operator (user@host); or the reveals by this partner, or by this partner/key',
      read(Text(300)),
    )
    .option('--since <time>', 'only entries since then: 24h, 2026-11-20 or 2026-11-20T08:00:00Z', read(Since))
    .addHelpText(
      'after',
      examples(
        'audit list --since 24h',
        'audit list --subject card_01k0…',
        'audit list --actor ada@ops-1 --since 2026-11-20T08:00:00Z --json',
      ),
    )
    .action(
      verb(async ({ since = null, subject = null, actor = null }: AuditFlags) => {
        const entries = await readAudit(await session.orm(), { since, subject, actor });
        return {
          value: entries,
          columns: ['at', 'actor', 'action', 'subject', 'detail'],
          ...(entries.length === 0 && { note: 'Nothing that matches was changed or revealed.' }),
        };
      }),
    );
}

interface AuditFlags {
  since?: Date | null;
  subject?: string | null;
  actor?: string | null;
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
 * @param filter.since null: from the beginning
 */
async function readAudit(orm: Orm, filter: Required<AuditFlags>): Promise<AuditResource[]> {
  const [partnerId = '', keyId = ''] = filter.actor?.split('/') ?? [];
  const entries = await entriesWith(filter)(orm.em.fork(), {
    since: filter.since?.toISOString() ?? '-infinity',
    subject: filter.subject ?? '',
    actor: filter.actor ?? '',
    ...{ partnerId, keyId },
  });
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

interface Asked {
  since: string;
  subject: string;
  actor: string;
  /** The parts of an actor who reveals. */
  partnerId: string;
  keyId: string;
}

/** Each filter is a condition of its own, for which there is an index. */
const entriesWith = ({ subject: hasSubject, actor: hasActor }: Required<AuditFlags>) =>
  readStatement((db, { since, subject, actor, partnerId, keyId }: Asked) =>
    db
      .selectFrom('audit_entry')
      .select(['id', 'at', 'actor', 'action', 'subject', 'detail'])
      .where('at', '>=', since)
      .$if(hasSubject !== null, (entries) => entries.where('subject', '=', subject))
      .$if(hasActor !== null, (entries) => entries.where('actor', '=', actor))
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
          .where('created_at', '>=', since)
          .$if(hasSubject !== null, (reveals) => reveals.where('card_id', '=', subject))
          .$if(hasActor !== null, (reveals) =>
            reveals
              .where('partner_id', '=', partnerId)
              .where('mode', 'in', [...Mode.options])
              .$if(hasActor?.includes('/') ?? false, (ofKey) => ofKey.where('api_key_id', '=', keyId)),
          ),
      )
      .orderBy('at', 'desc')
      .orderBy('id', 'desc'),
  );
