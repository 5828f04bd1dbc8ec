import { sql } from 'kysely';
import { isoTime } from '../domain/iso-time.ts';
import { Mode } from '../domain/mode.ts';
import { unknownId } from '../domain/refusal.ts';
import { lowestId, readIdTime } from '../platform/crypto/new-id.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import { columnList, readStatement } from '../platform/db/sql.ts';

/** Requests that were recorded: with an Idempotency-Key, or a change of a live card's status, or a reveal. */
type Requests = Promise<RequestRow[]>;

interface RequestRow {
  /** Of its record. */
  id: string;
  created: string;
}

/** Every account can have used the key in each mode. @param partnerId only this account's; null: all */
export const findByIdempotencyKey = async (orm: Orm, key: string, partnerId: string | null): Requests =>
  (await claimsUnderKey(orm.em.fork(), { key, partnerId })).map(present);

/**
 * A request has this long between getting its id and being recorded: to send its body, and to wait for its
 * turn.
 */
const MAX_REQUEST_MS = 90_000;

/** @param requestId which has its time, so nothing needs an index on it */
export async function findByRequestId(orm: Orm, requestId: string): Requests {
  const from = readIdTime(requestId);
  const until = new Date(from.getTime() + MAX_REQUEST_MS);
  const found = await recordedInTime(orm.em.fork(), {
    requestId,
    claimsFrom: lowestId('claim', from),
    claimsUntil: lowestId('claim', until),
    revealsFrom: lowestId('rvl', from),
    revealsUntil: lowestId('rvl', until),
  });
  return found.map(present);
}

/**
 * What a key did, newest first.
 * @param page.before only what is older than this record
 * @throws Refusal if there is no such key.
 */
export async function findByApiKey(
  orm: Orm,
  apiKeyId: string,
  page: { since: Date; before: string | null; limit: number },
): Requests {
  const em = orm.em.fork();
  if ((await selectKey(em, { apiKeyId })).length === 0)
    throw unknownId('key', apiKeyId, 'run "operator key list"');
  const { since, before, limit } = page;
  const end = before === null ? '~' : before.slice(before.indexOf('_') + 1);
  const found = await recordedOfKey(limit)(em, {
    apiKeyId,
    limit,
    claimsFrom: lowestId('claim', since),
    claimsBefore: `claim_${end}`,
    since: since.toISOString(),
    revealsBefore: `rvl_${end}`,
  });
  return found.map(present);
}

/** By which request something was made. */
export interface MadeBy {
  request_id: string;
  idempotency_key: string | null;
  api_key_id: string | null;
  client_address: string | null;
}

/**
 * The id of what a request makes is generated together with the record's, but not in the same millisecond.
 */
const APART_MS = 1_000;

/**
 * The requests that made these cards, top-ups or deposits, by their ids; those older than 31 days are
 * forgotten.
 */
export async function readMakers(
  orm: Orm,
  resourceIds: readonly string[],
): Promise<ReadonlyMap<string, MadeBy>> {
  const times = resourceIds.map((id) => readIdTime(id).getTime());
  const rows = await selectMakers(orm.em.fork(), {
    resourceIds: [...resourceIds],
    froms: times.map((timeMs) => lowestId('claim', new Date(timeMs - APART_MS))),
    untils: times.map((timeMs) => lowestId('claim', new Date(timeMs + APART_MS))),
  });
  return new Map(rows.map(({ resource_id, ...maker }) => [resource_id, maker]));
}

const present = (row: RequestRow): RequestRow => ({ ...row, created: isoTime(row.created) });

const CLAIM_COLUMNS = [
  ...(['id', 'partner_id', 'mode', 'key', 'operation', 'resource_id', 'card_id', 'request_id'] as const),
  ...(['api_key_id', 'client_address', 'by_operator', 'response_status', 'created_at'] as const),
];

// A request that was refused made nothing. Who the operator was is in "audit list --subject CARD".
const CLAIMED = sql`c.id, 'request' AS object, c.request_id, c.key AS idempotency_key, c.partner_id,
  p.name AS partner_name,
  c.mode, c.operation, CASE WHEN c.response_status >= 400 THEN NULL ELSE c.resource_id END AS resource_id, c.card_id,
  c.response_status, c.by_operator, c.api_key_id, c.client_address, c.created_at AS created`;

const REVEALED = sql`v.id, 'request', v.request_id, NULL, v.partner_id, p.name, v.mode, 'reveal_card', NULL,
  v.card_id, NULL::int, false, v.api_key_id, v.client_address, v.created_at`;

/** The part of an id that sorts by age, whatever the id is of. */
const AGE = sql`substr(id, strpos(id, '_')) COLLATE "C"`;

// The LIMIT makes it look the key up in each account, by the index that claims are made with.
const claimsUnderKey = readStatement(
  (_, { key, partnerId }: { key: string; partnerId: string | null }) => sql<RequestRow>`
    SELECT ${CLAIMED} FROM (SELECT id, name FROM partner WHERE ${partnerId}::text IS NULL
      OR id = ${partnerId}::text) p
      CROSS JOIN unnest(${[...Mode.options]}::text[]) wanted (mode)
      CROSS JOIN LATERAL (SELECT ${columnList('idempotency_claim', CLAIM_COLUMNS)} FROM idempotency_claim
        WHERE partner_id = p.id AND mode = wanted.mode AND key = ${key} LIMIT 1) c
    ORDER BY c.id DESC`,
  { acrossTenants: 'operator' },
);

type InTime = Record<'requestId' | 'claimsFrom' | 'claimsUntil' | 'revealsFrom' | 'revealsUntil', string>;

const recordedInTime = readStatement(
  (_, { requestId, claimsFrom, claimsUntil, revealsFrom, revealsUntil }: InTime) => sql<RequestRow>`
    SELECT * FROM (
      SELECT ${CLAIMED} FROM idempotency_claim c JOIN partner p ON p.id = c.partner_id
      WHERE c.id >= ${claimsFrom} AND c.id < ${claimsUntil} AND c.request_id = ${requestId}
      UNION ALL
      SELECT ${REVEALED} FROM card_reveal v JOIN partner p ON p.id = v.partner_id
      WHERE v.id >= ${revealsFrom} AND v.id < ${revealsUntil} AND v.request_id = ${requestId}) found
    ORDER BY ${AGE} DESC`,
  { acrossTenants: 'operator' },
);

const selectKey = readStatement(
  (db, { apiKeyId }: { apiKeyId: string }) =>
    db.selectFrom('api_key').select('id').where('id', '=', apiKeyId),
  { acrossTenants: 'operator' },
);

type OfKey = Record<'apiKeyId' | 'claimsFrom' | 'claimsBefore' | 'since' | 'revealsBefore', string> & {
  limit: number;
};

// An account can make 20 reveals a day.
const recordedOfKey = (maxRows: number) =>
  readStatement(
    (_, { apiKeyId, claimsFrom, claimsBefore, since, revealsBefore, limit }: OfKey) => {
      const claims = newestRows({
        table: 'idempotency_claim',
        columns: CLAIM_COLUMNS,
        where: { api_key_id: apiKeyId },
        id: 'id',
        from: claimsFrom,
        before: claimsBefore,
        limit,
        maxRows,
      });
      return sql<RequestRow>`SELECT * FROM (
          SELECT ${CLAIMED} FROM ${claims} c JOIN partner p ON p.id = c.partner_id
          UNION ALL
          SELECT ${REVEALED} FROM api_key k JOIN partner p ON p.id = k.partner_id CROSS JOIN LATERAL (
            SELECT id, request_id, partner_id, mode, card_id, api_key_id, client_address, created_at
              FROM card_reveal
            WHERE partner_id = k.partner_id AND mode = k.mode AND created_at >= ${since}::timestamptz
              AND api_key_id = k.id
              AND id < ${revealsBefore} ORDER BY created_at DESC LIMIT ${limit}) v
          WHERE k.id = ${apiKeyId}) found
        ORDER BY ${AGE} DESC LIMIT ${limit}`;
    },
    { acrossTenants: 'operator' },
  );

const selectMakers = readStatement(
  (_, of: { resourceIds: string[]; froms: string[]; untils: string[] }) => sql<
    MadeBy & { resource_id: string }
  >`
    SELECT wanted.resource_id, c.*
      FROM unnest(${of.resourceIds}::text[], ${of.froms}::text[], ${of.untils}::text[])
        wanted (resource_id, from_id, until_id)
      CROSS JOIN LATERAL (SELECT request_id, key AS idempotency_key, api_key_id, client_address
        FROM idempotency_claim
        WHERE id >= wanted.from_id AND id < wanted.until_id AND resource_id = wanted.resource_id LIMIT 1) c`,
  { acrossTenants: 'operator' },
);
