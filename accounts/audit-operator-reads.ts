import { sql } from 'kysely';
import { Mode } from '../domain/mode.ts';
import type { Orm } from '../platform/db/orm.ts';
import { type Reads, readStatement } from '../platform/db/sql.ts';

export interface AuditResource {
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
  /** The card's, also if the entry is about its transfer or transaction; null if it is about no card. */
  external_ref: string | null;
  last4: string | null;
  detail: Record<string, unknown>;
  /** OPERATOR as the command line had it; null of what partners, workers and signals do, and if it was not set. */
  operator: string | null;
  /** The operating system's user and the machine of the command line. */
  os_user: string | null;
  host: string | null;
  /** The login that made the change; null of entries from before logins were recorded, and of reveals. */
  database_login: string | null;
  /** Where a reveal was asked for from. */
  client_address: string | null;
}

export interface AuditFilter {
  /** Null: from the beginning. */
  since: Date | null;
  subject: string | null;
  actor: string | null;
}

/**
 * Operators' changes and partners' reveals, newest first. A reveal is listed even if the network then failed to answer, and a
 * refused one under an action of its own.
 */
export async function readAudit(orm: Orm, filter: AuditFilter): Promise<AuditResource[]> {
  const [partnerId = '', keyId = ''] = filter.actor?.split('/') ?? [];
  const entries = await entriesWith(filter)(orm.em.fork(), {
    since: filter.since?.toISOString() ?? '-infinity',
    subject: filter.subject ?? '',
    actor: filter.actor ?? '',
    partnerId,
    keyId,
  });
  return entries.map((entry) => ({
    id: entry.id,
    object: 'audit_entry',
    at: new Date(entry.at).toISOString(),
    actor: entry.actor,
    action: entry.action,
    subject: entry.subject,
    partner_id: entry.partner_id,
    partner_name: entry.partner_name,
    external_ref: entry.external_ref,
    last4: entry.last4,
    detail: entry.detail,
    operator: entry.operator,
    os_user: entry.os_user,
    host: entry.host,
    database_login: entry.database_login,
    client_address: entry.client_address,
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

const entriesWith = (filter: AuditFilter) =>
  readStatement(
    (db, asked: Asked) => {
      // An index is used in its own collation: the bytes' for cards and what belongs to them, else the database's.
      const subject = sql<string>`e.subject COLLATE "C"`;
      const partnerId = sql<string>`coalesce(k.partner_id, v.partner_id, d.partner_id, a.partner_id, e.subject) COLLATE "default"`;
      return db
        .selectFrom(unnamedEntries(db, filter, asked).as('e'))
        .leftJoin('card_transfer as t', (transfer) => transfer.on('t.id', '=', subject))
        .leftJoin('card_transaction as x', (transaction) => transaction.on('x.id', '=', subject))
        .leftJoin('event as v', (event) => event.on('v.id', '=', subject))
        .leftJoin('deposit as d', (deposit) => deposit.on('d.id', '=', subject))
        .leftJoin('api_key as a', 'a.id', 'e.subject')
        .leftJoin('card as k', (card) =>
          card.on(({ eb, fn }) =>
            eb('k.id', '=', fn.coalesce('t.card_id', 'x.card_id', 'v.card_id', subject)),
          ),
        )
        .leftJoin('partner as p', (partner) => partner.on('p.id', '=', partnerId))
        .select(['e.id', 'e.at', 'e.actor', 'e.action', 'e.subject'])
        .select(['p.id as partner_id', 'p.name as partner_name', 'k.external_ref', 'k.last4', 'e.detail'])
        .select(['e.operator', 'e.os_user', 'e.host', 'e.database_login', 'e.client_address'])
        .orderBy('e.at', 'desc')
        .orderBy('e.id', 'desc');
    },
    { acrossTenants: 'operator' },
  );

/** Each filter is a condition of its own, for which there is an index. */
const unnamedEntries = (
  db: Reads,
  { subject: hasSubject, actor: hasActor }: AuditFilter,
  { since, subject, actor, partnerId, keyId }: Asked,
) => {
  const none = sql<string | null>`NULL::text`;
  const ofPartner = sql<boolean>`partner_id = ${partnerId} AND mode IN (${sql.join(Mode.options.map((mode) => sql.lit(mode)))})`;
  // A partner's keys are partner/key. An index is used in its own collation, so these are compared as a list.
  const ofActor = sql<boolean>`actor = ANY (ARRAY[${actor}] || ARRAY(SELECT k.partner_id || '/' || k.id FROM api_key k WHERE k.partner_id = ${actor}))`;
  const actorOfReveal = sql<string>`partner_id || '/' || api_key_id`;
  return db
    .selectFrom('audit_entry')
    .select([
      'id',
      'at',
      'actor',
      'action',
      'subject',
      'detail',
      'operator',
      'os_user',
      'host',
      'database_login',
    ])
    .select(none.as('client_address'))
    .where('at', '>=', since)
    .$if(hasSubject !== null, (entries) => entries.where('subject', '=', subject))
    .$if(hasActor !== null, (entries) => entries.where(ofActor))
    .unionAll(
      db
        .selectFrom('card_reveal')
        .select(['id', 'created_at as at', actorOfReveal.as('actor')])
        .select([sql.lit<string>('card.reveal').as('action'), 'card_id as subject'])
        .select(
          sql<Record<string, unknown>>`jsonb_build_object('mode', mode, 'request_id', request_id)`.as(
            'detail',
          ),
        )
        .select([none.as('operator'), none.as('os_user'), none.as('host'), none.as('database_login')])
        .select('client_address')
        .where('created_at', '>=', since)
        .$if(hasSubject !== null, (reveals) => reveals.where('card_id', '=', subject))
        .$if(hasActor !== null, (reveals) => reveals.where(ofPartner))
        .$if(hasActor?.includes('/') ?? false, (reveals) => reveals.where('api_key_id', '=', keyId)),
    )
    .unionAll(
      db
        .selectFrom('refused_reveal')
        .select(['id', 'created_at as at', actorOfReveal.as('actor')])
        .select(sql.lit<string>('card.reveal-refused').as('action'))
        .select(sql<string>`coalesce(card_id, partner_id)`.as('subject'))
        .select(
          sql<
            Record<string, unknown>
          >`jsonb_build_object('mode', mode, 'request_id', request_id, 'reason', reason)`.as('detail'),
        )
        .select([none.as('operator'), none.as('os_user'), none.as('host'), none.as('database_login')])
        .select('client_address')
        .where('created_at', '>=', since)
        .$if(hasSubject !== null, (reveals) => reveals.where('card_id', '=', subject))
        .$if(hasActor !== null, (reveals) => reveals.where(ofPartner))
        .$if(hasActor?.includes('/') ?? false, (reveals) => reveals.where('api_key_id', '=', keyId)),
    );
};
