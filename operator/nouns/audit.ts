import type { Command } from 'commander';
import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { type Reads, readStatement } from '../../db/sql.ts';
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
          columns: COLUMNS,
          ...(entries.length === 0 && { note: 'Nothing that matches was changed or revealed.' }),
        };
      }),
    );
}

const COLUMNS = ['at', 'actor', 'action', 'subject', 'partner_name', 'external_ref', 'last4', 'detail'];

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
  /** The partner it belongs to; null if it belongs to none, as a product does. */
  partner_id: string | null;
  partner_name: string | null;
  /** The card's, also if the entry is about its top-up or transaction; null if it is about no card. */
  external_ref: string | null;
  last4: string | null;
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
  return entries.map(({ id, at, detail, ...entry }) => ({
    ...{ id, object: 'audit_entry', at: new Date(at).toISOString() },
    ...entry,
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

const entriesWith = (filter: Required<AuditFlags>) =>
  readStatement((db, asked: Asked) => {
    // An index is used in its own collation: the bytes' for cards and what belongs to them, else the database's.
    const subject = sql<string>`e.subject COLLATE "C"`;
    const partnerId = sql<string>`coalesce(k.partner_id, v.partner_id, d.partner_id, a.partner_id, e.subject) COLLATE "default"`;
    return db
      .selectFrom(unnamedEntries(db, filter, asked).as('e'))
      .leftJoin('topup as t', (topUp) => topUp.on('t.id', '=', subject))
      .leftJoin('card_transaction as x', (transaction) => transaction.on('x.id', '=', subject))
      .leftJoin('event as v', (event) => event.on('v.id', '=', subject))
      .leftJoin('deposit as d', (deposit) => deposit.on('d.id', '=', subject))
      .leftJoin('api_key as a', 'a.id', 'e.subject')
      .leftJoin('card as k', (card) =>
        card.on(({ eb, fn }) => eb('k.id', '=', fn.coalesce('t.card_id', 'x.card_id', 'v.card_id', subject))),
      )
      .leftJoin('partner as p', (partner) => partner.on('p.id', '=', partnerId))
      .select(['e.id', 'e.at', 'e.actor', 'e.action', 'e.subject'])
      .select(['p.id as partner_id', 'p.name as partner_name', 'k.external_ref', 'k.last4', 'e.detail'])
      .orderBy('e.at', 'desc')
      .orderBy('e.id', 'desc');
  });

/** Each filter is a condition of its own, for which there is an index. */
const unnamedEntries = (
  db: Reads,
  { subject: hasSubject, actor: hasActor }: Required<AuditFlags>,
  { since, subject, actor, partnerId, keyId }: Asked,
) =>
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
    );
