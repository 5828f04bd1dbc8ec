import { sql } from 'kysely';
import { isoTime } from '../domain/iso-time.ts';
import { Mode } from '../domain/mode.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';

interface AuditFilter {
  /** Null: from the beginning. */
  since: Date | null;
  subject: string | null;
  actor: string | null;
  limit: number;
}

/** An entry of the log, or a reveal. */
export interface AuditRow {
  id: string;
  object: 'audit_entry';
  at: string;
  /** An operator; for a reveal, the partner and its API key. */
  actor: string;
  action: string;
  /** The id of what was changed, or of the revealed card. */
  subject: string;
  detail: Record<string, unknown>;
  /**
   * OPERATOR as the command line had it; null of what partners, workers and signals do, and if it was not
   * set.
   */
  operator: string | null;
  /** The operating system's user and the machine of the command line. */
  os_user: string | null;
  host: string | null;
  /** The login that made the change; null of entries from before logins were recorded, and of reveals. */
  database_login: string | null;
  /** Where a reveal was asked for from. */
  client_address: string | null;
}

/**
 * An entry with its partner, null if it belongs to none, as a product does; and the card's reference and last
 * digits.
 */
interface NamedRow extends AuditRow {
  partner_id: string | null;
  partner_name: string | null;
  external_ref: string | null;
  last4: string | null;
}

/**
 * Operators' changes and partners' reveals, newest first. A reveal is listed even if the network then failed
 * to answer, and a refused one under an action of its own.
 */
export async function readAudit(orm: Orm, filter: AuditFilter): Promise<NamedRow[]> {
  const [partnerId = '', keyId = ''] = filter.actor?.split('/') ?? [];
  const entries = await entriesWith(filter)(orm.em.fork(), {
    since: filter.since?.toISOString() ?? '-infinity',
    subject: filter.subject ?? '',
    actor: filter.actor ?? '',
    partnerId,
    keyId,
    limit: filter.limit,
  });
  return entries.map((entry) => ({ ...entry, at: isoTime(entry.at) }));
}

interface Asked {
  since: string;
  subject: string;
  actor: string;
  /** The parts of an actor who reveals. */
  partnerId: string;
  keyId: string;
  limit: number;
}

// An index is used in its own collation: the bytes' for cards and what belongs to them, else the database's.
const entriesWith = (filter: AuditFilter) =>
  readStatement(
    (_, asked: Asked) => sql<NamedRow>`
      SELECT e.id, 'audit_entry' AS object, e.at, e.actor, e.action, e.subject, p.id AS partner_id,
        p.name AS partner_name,
        k.external_ref, k.last4, e.detail, e.operator, e.os_user, e.host, e.database_login, e.client_address
      FROM (${unnamedEntries(filter, asked)}) e
        LEFT JOIN card_transfer t ON t.id = e.subject COLLATE "C"
        LEFT JOIN card_transaction x ON x.id = e.subject COLLATE "C"
        LEFT JOIN event v ON v.id = e.subject COLLATE "C"
        LEFT JOIN deposit d ON d.id = e.subject COLLATE "C"
        LEFT JOIN api_key a ON a.id = e.subject
        LEFT JOIN card k ON k.id = coalesce(t.card_id, x.card_id, v.card_id, e.subject COLLATE "C")
        LEFT JOIN partner p
          ON p.id = coalesce(k.partner_id, v.partner_id, d.partner_id, a.partner_id, e.subject) COLLATE "default"
      ORDER BY e.at DESC, e.id DESC`,
    { acrossTenants: 'operator' },
  );

/** Each filter is a condition of its own, for which there is an index. */
function unnamedEntries(filter: AuditFilter, { since, subject, actor, partnerId, keyId, limit }: Asked) {
  const none = sql``;
  const ofSubject = filter.subject === null ? none : sql`AND subject = ${subject}`;
  // A partner's keys are partner/key. An index is used in its own collation, so these are compared as a list.
  const ofActor =
    filter.actor === null
      ? none
      : sql`AND actor = ANY (ARRAY[${actor}] ||
          ARRAY(SELECT k.partner_id || '/' || k.id FROM api_key k WHERE k.partner_id = ${actor}))`;
  const ofCard = filter.subject === null ? none : sql`AND card_id = ${subject}`;
  const modes = sql.join(Mode.options.map((mode) => sql.lit(mode)));
  const ofPartner = filter.actor === null ? none : sql`AND partner_id = ${partnerId} AND mode IN (${modes})`;
  const ofKey = filter.actor?.includes('/') ? sql`AND api_key_id = ${keyId}` : none;
  const revealed = sql`created_at >= ${since} ${ofCard} ${ofPartner} ${ofKey}`;
  return sql`
    (SELECT id, at, actor, action, subject, detail, operator, os_user, host, database_login,
      NULL AS client_address
    FROM audit_entry WHERE at >= ${since} ${ofSubject} ${ofActor} ORDER BY at DESC, id DESC LIMIT ${limit})
    UNION ALL
    (SELECT id, created_at, partner_id || '/' || api_key_id, 'card.reveal', card_id,
      jsonb_build_object('mode', mode, 'request_id', request_id), NULL, NULL, NULL, NULL, client_address
    FROM card_reveal WHERE ${revealed} ORDER BY created_at DESC, id DESC LIMIT ${limit})
    UNION ALL
    (SELECT id, created_at, partner_id || '/' || api_key_id, 'card.reveal-refused',
      coalesce(card_id, partner_id),
      jsonb_build_object('mode', mode, 'request_id', request_id, 'reason', reason), NULL, NULL,
      NULL, NULL, client_address
    FROM refused_reveal WHERE ${revealed} ORDER BY created_at DESC, id DESC LIMIT ${limit})
    ORDER BY at DESC, id DESC LIMIT ${limit}`;
}
