import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { newId, readIdTime } from '../platform/crypto/new-id.ts';
import { newToken, tokenHashes } from '../platform/crypto/token.ts';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { type OperatorContext, recordAudit } from '../requests/operator-context.ts';
import { insertApiKey, keyIsUsable } from './api-keys.ts';
import { holdClock } from './clock.ts';
import { lockForChange, mustHave, type NarrowedKey, record } from './own-keys.ts';
import { lockPartner } from './partners.ts';
import { Scope, sessionScopes, withoutApiKeys } from './scope-rules.ts';
import type { WorkbenchSessionRequest, WorkbenchSessionRow } from './workbench-session-resource.ts';

/** For a `sql` template where the session is `s` and its key `k`: whether it, or its link, can be used. */
export const IS_OPEN = sql`s.ended_at IS NULL AND s.expires_at > now()
  AND (s.cookie_hash IS NOT NULL OR s.link_expires_at > now()) AND ${keyIsUsable('k')}`;

/** For a `sql` template's FROM: sessions as `s`, each with its key as `k`. */
export const SESSION_WITH_KEY = sql`workbench_session s
  JOIN api_key k ON k.id = s.api_key_id AND k.partner_id = s.partner_id AND k.mode = s.mode`;

/** A session as partners see it, for a `sql` template where it is `s` and its key `k`. */
export const SHOWN_SESSION = sql`s.id, s.partner_id, s.mode, s.api_key_id, s.scopes, s.link_expires_at, s.expires_at, s.created_at,
  CASE WHEN NOT (${IS_OPEN}) THEN 'ended' WHEN s.cookie_hash IS NULL THEN 'unopened' ELSE 'open' END AS status`;

/** How many sessions of an account and mode can be open at a time (docs/partners/workbench.md). */
const MAX_OPEN = 100;
/** How many it can make in any 24 hours, so that a loop can't fill the table. */
const MAX_A_DAY = 1_000;

/** The link's token is in the fragment, which no browser sends, so that no log has it. */
export const workbenchUrl = (origin: string, token: string): string => `${origin}/workbench/#${token}`;

interface MadeSession {
  row: WorkbenchSessionRow;
  /** Opens it, once. */
  token: string;
}

/**
 * Makes a session for the account and mode of the key that asks, never wider than it.
 * @throws ApiError `insufficient_scope` if it would get a scope that the key lacks, `limit_exceeded`,
 *   `rate_limited`; `invalid_api_key` and `account_suspended` if the key has meanwhile been revoked or
 *   suspended
 */
export function createWorkbenchSession(
  { orm, ring }: CommandContext,
  asking: NarrowedKey,
  { scopes, expires_in_seconds: expiresInSeconds }: WorkbenchSessionRequest,
): Promise<MadeSession> {
  const { partnerId, mode, keyId } = asking;
  return transaction(orm, async (tx) => {
    await lockForChange(tx, asking);
    const given = scopes ?? withoutApiKeys(sessionScopes(asking.scopes));
    mustHave(asking, given, 'give');
    await mustHaveRoom(tx, { partnerId, mode });
    const made = { partnerId, mode, keyId, scopes: given, expiresInSeconds };
    const session = await insertSession(tx, ring, made);
    record(tx, asking, 'workbench.create', session.row.id, { scopes: given, expiresInSeconds });
    return session;
  });
}

/** The name of the key that sessions of operators' links belong to. Nobody has the key itself. */
const OPERATORS_KEY = 'Workbench links by the operator';

/**
 * Makes a session for an operator's link, with a key of its own that its partner sees and can revoke.
 * @param scopes null: all but `api_keys:write`
 * @throws Refusal if there is no such account
 */
export function createWorkbenchLink(
  { orm, ring, actor }: OperatorContext,
  { partnerId, mode }: Tenant,
  { scopes, expires_in_seconds: expiresInSeconds }: WorkbenchSessionRequest,
): Promise<MadeSession> {
  return transaction(orm, async (tx) => {
    const clock = await holdClock(tx, { partnerId, mode });
    await lockPartner(tx, partnerId);
    const [key] = await findOperatorsKey(tx, { partnerId, mode, name: OPERATORS_KEY });
    let keyId = key?.id;
    if (keyId === undefined) {
      const name = OPERATORS_KEY;
      const made = { partnerId, mode, name, scopes: sessionScopes(Scope.options), ipAllowlist: null };
      const inserted = await insertApiKey(tx, ring, {
        ...made,
        expiresAt: null,
        createdBy: 'operator',
        clock,
      });
      keyId = inserted.id;
      recordAudit(tx, {
        actor,
        action: 'key.create',
        subject: keyId,
        detail: { ...made, hint: inserted.hint },
      });
    }
    const given = scopes ?? withoutApiKeys(sessionScopes(Scope.options));
    const session = await insertSession(tx, ring, {
      partnerId,
      mode,
      keyId,
      scopes: given,
      expiresInSeconds,
    });
    const detail = { partnerId, mode, keyId, scopes: given, expiresInSeconds };
    recordAudit(tx, { actor, action: 'workbench.create', subject: session.row.id, detail });
    return session;
  });
}

const findOperatorsKey = writeStatement(
  (_, { partnerId, mode, name }: Tenant & { name: string }) => sql<{ id: string }>`
  SELECT k.id FROM api_key k WHERE k.partner_id = ${partnerId} AND k.mode = ${mode} AND k.name = ${name}
    AND k.created_by = 'operator' AND ${keyIsUsable('k')} ORDER BY k.id DESC LIMIT 1 FOR NO KEY UPDATE`,
);

/**
 * Ends a session; every process refuses it within 5 s. One that has ended does not change.
 * @throws ApiError `workbench_session_not_found`
 */
export function endWorkbenchSession(
  { orm }: Pick<CommandContext, 'orm'>,
  asking: NarrowedKey,
  id: string,
): Promise<void> {
  const { partnerId, mode } = asking;
  return transaction(orm, async (tx) => {
    const [session] = isId('wbs', id) ? await lockOwn(tx, { partnerId, mode, id }) : [];
    if (session === undefined) throw new ApiError('workbench_session_not_found');
    if (session.ended_at !== null) return;
    await endSession(tx, { partnerId, mode, id });
    record(tx, asking, 'workbench.end', id, {});
  });
}

interface NewSession extends Tenant {
  keyId: string;
  scopes: readonly Scope[];
  expiresInSeconds: number;
}

async function insertSession(
  tx: Transactor,
  ring: CommandContext['ring'],
  { scopes, ...made }: NewSession,
): Promise<MadeSession> {
  const token = newToken();
  const [linkHash] = tokenHashes(ring, 'workbench-link', token);
  const id = newId('wbs');
  const createdAt = readIdTime(id).toISOString();
  const [row] = await insert(tx, { ...made, id, createdAt, scopes: [...scopes], linkHash });
  if (row === undefined) throw new Error('an insert returns its row');
  return { row, token };
}

interface SessionValues extends Omit<NewSession, 'scopes'> {
  id: string;
  createdAt: string;
  scopes: string[];
  linkHash: Buffer;
}

const insert = writeStatement(
  (_, made: SessionValues) => sql<WorkbenchSessionRow>`
  INSERT INTO workbench_session (id, partner_id, mode, api_key_id, scopes, link_hash, link_expires_at, expires_at, created_at)
  VALUES (${made.id}, ${made.partnerId}, ${made.mode}, ${made.keyId}, ${made.scopes}, ${made.linkHash},
    ${made.createdAt}::timestamptz + interval '5 minutes',
    ${made.createdAt}::timestamptz + ${made.expiresInSeconds} * interval '1 second', ${made.createdAt})
  RETURNING id, partner_id, mode, api_key_id, scopes, link_expires_at, expires_at, created_at, 'unopened' AS status`,
);

async function mustHaveRoom(tx: Transactor, { partnerId, mode }: Tenant): Promise<void> {
  const [row] = await countSessions(tx, { partnerId, mode, maxADay: MAX_A_DAY, maxOpen: MAX_OPEN });
  if (row === undefined) throw new Error('a count has one row');
  if (row.made >= MAX_A_DAY) {
    throw new ApiError('rate_limited', {
      message: `This account has made ${MAX_A_DAY} workbench sessions in this mode within 24 hours, and can't make more for now. Retry after the number of seconds in Retry-After.`,
      retryAfterSeconds: 3_600,
    });
  }
  if (row.open < MAX_OPEN) return;
  throw new ApiError('limit_exceeded', {
    message: `This account has ${MAX_OPEN} workbench sessions in this mode, and can't have more. End one first: DELETE /workbench-sessions/{sessionId}.`,
  });
}

const countSessions = writeStatement(
  (_, { partnerId, mode, maxADay, maxOpen }: Tenant & { maxADay: number; maxOpen: number }) => sql<{
    open: number;
    made: number;
  }>`
  SELECT (SELECT count(*) FROM (
      SELECT FROM ${SESSION_WITH_KEY}
      WHERE s.partner_id = ${partnerId} AND s.mode = ${mode} AND ${IS_OPEN} LIMIT ${maxOpen}) open)::int AS open,
    (SELECT count(*) FROM (
      SELECT FROM workbench_session
      WHERE partner_id = ${partnerId} AND mode = ${mode} AND id > 'wbs_' || id_time(now() - interval '1 day')
      ORDER BY id DESC LIMIT ${maxADay}) day)::int AS made`,
);

const lockOwn = writeStatement(
  (_, { partnerId, mode, id }: Tenant & { id: string }) => sql<{ ended_at: string | null }>`
  SELECT s.ended_at FROM workbench_session s
  WHERE s.id = ${id} AND s.partner_id = ${partnerId} AND s.mode = ${mode} FOR NO KEY UPDATE`,
);

export const endSession = writeStatement(
  (_, { partnerId, mode, id }: Tenant & { id: string }) => sql`
  UPDATE workbench_session SET ended_at = now() WHERE id = ${id} AND partner_id = ${partnerId} AND mode = ${mode}`,
);

/** How long sessions are kept after they expired. */
const KEPT_DAYS = 7;

/** Deletes sessions that were over long ago. @returns how many, at most `limit` */
export async function pruneWorkbenchSessions(orm: Orm, limit: number): Promise<number> {
  return (await prune(orm, { limit, keptDays: KEPT_DAYS })).length;
}

const prune = autocommitStatement(
  (_, { limit, keptDays }: { limit: number; keptDays: number }) => sql<{ id: string }>`
    DELETE FROM workbench_session WHERE id IN (
      SELECT id FROM workbench_session WHERE expires_at < now() - ${keptDays} * interval '1 day' LIMIT ${limit})
    RETURNING id`,
  { acrossTenants: 'queue' },
);
