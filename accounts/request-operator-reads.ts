import { sql } from 'kysely';
import type { ClaimOperation } from '../domain/claim-operation.ts';
import { Mode } from '../domain/mode.ts';
import { unknownId } from '../domain/refusal.ts';
import { lowestId, readIdTime } from '../platform/crypto/new-id.ts';
import type { Row } from '../platform/db/entities.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import { columnList, readStatement } from '../platform/db/sql.ts';
import { readPartnerNames } from './operator-reads.ts';

/** A request that was recorded: with an Idempotency-Key, or a change of a live card's status, or a reveal. */
export interface OperatorRequest {
  /** Of its record. */
  id: string;
  object: 'request';
  request_id: string;
  idempotency_key: string | null;
  partner_id: string;
  partner_name: string;
  mode: Mode;
  operation: ClaimOperation | 'reveal_card';
  /** What it made, such as a card; null if it made nothing, or was refused. */
  resource_id: string | null;
  /** The card it is about, if that existed before. */
  card_id: string | null;
  /** Of the first response; null as long as there is none, and for a reveal. */
  response_status: number | null;
  /** Whether an operator asked for it ("audit list --subject CARD" has who), rather than the partner. */
  by_operator: boolean;
  /** Null if an operator requested it. */
  api_key_id: string | null;
  client_address: string | null;
  created: string;
}

/** Every account can have used the key in each mode. @param partnerId only this account's; null: all */
export async function findByIdempotencyKey(
  orm: Orm,
  key: string,
  partnerId: string | null,
): Promise<OperatorRequest[]> {
  const rows = await claimsUnderKey(orm.em.fork(), { key, partnerId });
  return withNames(orm, rows.map(presentClaim));
}

/** A request has this long between getting its id and being recorded: to send its body, and to wait for its turn. */
const MAX_REQUEST_MS = 90_000;

/** @param requestId which has its time, so nothing needs an index on it */
export async function findByRequestId(orm: Orm, requestId: string): Promise<OperatorRequest[]> {
  const from = readIdTime(requestId);
  const until = new Date(from.getTime() + MAX_REQUEST_MS);
  const em = orm.em.fork();
  const claims = await claimsInTime(em, {
    requestId,
    from: lowestId('claim', from),
    until: lowestId('claim', until),
  });
  const reveals = await revealsInTime(em, {
    requestId,
    from: lowestId('rvl', from),
    until: lowestId('rvl', until),
  });
  return withNames(orm, [...claims.map(presentClaim), ...reveals.map(presentReveal)]);
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
): Promise<OperatorRequest[]> {
  const em = orm.em.fork();
  const [key] = await selectKeyAccount(em, { apiKeyId });
  if (key === undefined) throw unknownId('key', apiKeyId, 'run "operator key list"');
  const { since, before, limit } = page;
  const end = before === null ? '~' : idTail(before);
  const claims = await selectKeyClaims(limit)(em, {
    apiKeyId,
    limit,
    from: lowestId('claim', since),
    before: `claim_${end}`,
  });
  const reveals = await selectKeyReveals(em, {
    apiKeyId,
    partnerId: key.partner_id,
    mode: key.mode,
    since: since.toISOString(),
    before: `rvl_${end}`,
    limit,
  });
  const found = [...claims.map(presentClaim), ...reveals.map(presentReveal)];
  found.sort((a, b) => (idTail(a.id) < idTail(b.id) ? 1 : -1));
  return withNames(orm, found.slice(0, limit));
}

/** By which request something was made. */
export interface MadeBy {
  request_id: string;
  idempotency_key: string | null;
  api_key_id: string | null;
  client_address: string | null;
}

/** The id of what a request makes is generated together with the record's, but not in the same millisecond. */
const APART_MS = 1_000;

/** The requests that made these cards, top-ups or deposits, by their ids; those older than 31 days are forgotten. */
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
  return new Map(
    rows.map(({ resource_id, request_id, key, api_key_id, client_address }) => [
      resource_id,
      { request_id, idempotency_key: key, api_key_id, client_address },
    ]),
  );
}

/** The part of an id that sorts by age, whatever the id is of. */
const idTail = (id: string): string => id.slice(id.indexOf('_') + 1);

const CLAIM_COLUMNS = [
  'id',
  'partner_id',
  'mode',
  'key',
  'operation',
  'resource_id',
  'card_id',
  'request_id',
  'api_key_id',
  'client_address',
  'by_operator',
  'response_status',
  'created_at',
] as const;
type ClaimRow = Row<'idempotency_claim', (typeof CLAIM_COLUMNS)[number]>;

const REVEAL_COLUMNS = [
  'id',
  'partner_id',
  'mode',
  'card_id',
  'api_key_id',
  'request_id',
  'client_address',
  'created_at',
] as const;
type RevealRow = Row<'card_reveal', (typeof REVEAL_COLUMNS)[number]>;

type Unnamed = Omit<OperatorRequest, 'partner_name'>;

function presentClaim(row: ClaimRow): Unnamed {
  const wasRefused = row.response_status !== null && row.response_status >= 400;
  return {
    id: row.id,
    object: 'request',
    request_id: row.request_id,
    idempotency_key: row.key,
    partner_id: row.partner_id,
    mode: row.mode,
    operation: row.operation,
    resource_id: wasRefused ? null : row.resource_id,
    card_id: row.card_id,
    response_status: row.response_status,
    by_operator: row.by_operator,
    api_key_id: row.api_key_id,
    client_address: row.client_address,
    created: new Date(row.created_at).toISOString(),
  };
}

function presentReveal(row: RevealRow): Unnamed {
  return {
    id: row.id,
    object: 'request',
    request_id: row.request_id,
    idempotency_key: null,
    partner_id: row.partner_id,
    mode: row.mode,
    operation: 'reveal_card',
    resource_id: null,
    card_id: row.card_id,
    response_status: null,
    by_operator: false,
    api_key_id: row.api_key_id,
    client_address: row.client_address,
    created: new Date(row.created_at).toISOString(),
  };
}

async function withNames(orm: Orm, found: Unnamed[]): Promise<OperatorRequest[]> {
  const partnerIds = found.map(({ partner_id }) => partner_id);
  const names = await readPartnerNames(orm, partnerIds);
  return found.map((request) => ({ ...request, partner_name: names.get(request.partner_id) ?? '' }));
}

// The LIMIT makes it look the key up in each account, by the index that claims are made with.
const claimsUnderKey = readStatement(
  (_, { key, partnerId }: { key: string; partnerId: string | null }) => sql<ClaimRow>`
    SELECT c.* FROM (SELECT id FROM partner WHERE ${partnerId}::text IS NULL OR id = ${partnerId}::text) account
      CROSS JOIN unnest(${[...Mode.options]}::text[]) wanted (mode)
      CROSS JOIN LATERAL (SELECT ${columnList('idempotency_claim', CLAIM_COLUMNS)} FROM idempotency_claim
        WHERE partner_id = account.id AND mode = wanted.mode AND key = ${key} LIMIT 1) c
    ORDER BY c.id DESC`,
  { acrossTenants: 'operator' },
);

interface InTime {
  requestId: string;
  from: string;
  until: string;
}

const claimsInTime = readStatement(
  (db, { requestId, from, until }: InTime) =>
    db
      .selectFrom('idempotency_claim')
      .select(CLAIM_COLUMNS)
      .where('id', '>=', from)
      .where('id', '<', until)
      .where('request_id', '=', requestId)
      .orderBy('id', 'desc'),
  { acrossTenants: 'operator' },
);

const revealsInTime = readStatement(
  (db, { requestId, from, until }: InTime) =>
    db
      .selectFrom('card_reveal')
      .select(REVEAL_COLUMNS)
      .where('id', '>=', from)
      .where('id', '<', until)
      .where('request_id', '=', requestId)
      .orderBy('id', 'desc'),
  { acrossTenants: 'operator' },
);

const selectKeyAccount = readStatement(
  (db, { apiKeyId }: { apiKeyId: string }) =>
    db.selectFrom('api_key').select(['partner_id', 'mode']).where('id', '=', apiKeyId),
  { acrossTenants: 'operator' },
);

interface OfKey {
  apiKeyId: string;
  from: string;
  before: string;
  limit: number;
}

const selectKeyClaims = (maxRows: number) =>
  readStatement(
    (_, { apiKeyId, from, before, limit }: OfKey) => {
      const where = { api_key_id: apiKeyId };
      const columns = CLAIM_COLUMNS;
      const newest = newestRows({
        table: 'idempotency_claim',
        columns,
        where,
        id: 'id',
        from,
        before,
        limit,
        maxRows,
      });
      return sql<ClaimRow>`SELECT c.* FROM ${newest} c ORDER BY c.id DESC`;
    },
    { acrossTenants: 'operator' },
  );

// An account can make 20 a day.
const selectKeyReveals = readStatement(
  (
    db,
    of: { apiKeyId: string; partnerId: string; mode: Mode; since: string; before: string; limit: number },
  ) =>
    db
      .selectFrom('card_reveal')
      .select(REVEAL_COLUMNS)
      .where('partner_id', '=', of.partnerId)
      .where('mode', '=', of.mode)
      .where('created_at', '>=', of.since)
      .where('api_key_id', '=', of.apiKeyId)
      .where('id', '<', of.before)
      .orderBy('created_at', 'desc')
      .limit(of.limit),
);

type MakerRow = Row<'idempotency_claim', 'request_id' | 'key' | 'api_key_id' | 'client_address'> & {
  resource_id: string;
};

const selectMakers = readStatement(
  (_, of: { resourceIds: string[]; froms: string[]; untils: string[] }) => sql<MakerRow>`
    SELECT wanted.resource_id, c.* FROM unnest(${of.resourceIds}::text[], ${of.froms}::text[], ${of.untils}::text[])
        wanted (resource_id, from_id, until_id)
      CROSS JOIN LATERAL (SELECT request_id, key, api_key_id, client_address FROM idempotency_claim
        WHERE id >= wanted.from_id AND id < wanted.until_id AND resource_id = wanted.resource_id LIMIT 1) c`,
  { acrossTenants: 'operator' },
);
