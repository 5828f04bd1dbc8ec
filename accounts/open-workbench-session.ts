import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import { parseBlocks } from '../domain/ip-address.ts';
import type { Mode, Tenant } from '../domain/mode.ts';
import { newToken, tokenHashes } from '../platform/crypto/token.ts';
import { anyOf, readStatement, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { checkAddress } from './allowlist-rules.ts';
import { record } from './own-keys.ts';
import type { Scope } from './scope-rules.ts';
import { endSession, IS_OPEN, SESSION_WITH_KEY } from './workbench-sessions.ts';

/** A session that a browser has just opened, or has open. */
export interface OpenSession extends Tenant {
  id: string;
  partner_name: string;
  scopes: Scope[];
  expires_at: string;
  created_at: string;
}

/** Another account's session is open in this browser, and would be replaced. Nothing was spent. */
export class ReplacesSession extends Error {
  readonly open: OpenSession;

  constructor(open: OpenSession) {
    super("another account's session is open");
    this.open = open;
  }
}

/** What a browser sends to open a link. */
interface LinkOpening {
  token: string;
  /** What its cookie of a mode has; null if there is none. */
  cookieOf(mode: Mode): string | null;
  /** Whether it may replace another account's session. */
  replace: boolean;
  requestId: string;
  clientAddress: string | null;
}

/**
 * Exchanges a link's token for a cookie's, once. The session that the browser had open in this mode ends.
 * @throws ApiError `invalid_api_key` if the link can't be opened any more, `account_suspended`,
 *   `ip_not_allowed`; {@link ReplacesSession}
 */
export function openWorkbenchSession(
  { orm, ring }: CommandContext,
  { token, cookieOf, replace, requestId, clientAddress }: LinkOpening,
): Promise<{ session: OpenSession; cookie: string }> {
  return transaction(orm, async (tx) => {
    const [session] = await lockByLink(tx, { hashes: tokenHashes(ring, 'workbench-link', token) });
    if (session?.is_unopened !== true) {
      throw new ApiError('invalid_api_key', {
        message:
          'This link was opened before, is older than 5 minutes, or its API key has ended. Ask for a new one.',
      });
    }
    const { id, partner_id: partnerId, mode, api_key_id: keyId } = session;
    if (session.suspended_at !== null) throw new ApiError('account_suspended');
    const address = checkAddress(session.ip_allowlist && parseBlocks(session.ip_allowlist), clientAddress);
    const before = cookieOf(mode);
    const [open] =
      before === null
        ? []
        : await lockByCookie(tx, { hashes: tokenHashes(ring, `workbench-${mode}`, before) });
    if (open !== undefined) {
      if (open.partner_id !== partnerId && !replace) throw new ReplacesSession(toOpenSession(open));
      await endSession(tx, { partnerId: open.partner_id, mode: open.mode, id: open.id });
    }
    const cookie = newToken();
    const [cookieHash] = tokenHashes(ring, `workbench-${mode}`, cookie);
    await setCookie(tx, { partnerId, mode, id, cookieHash });
    const asking = { partnerId, mode, keyId, requestId, clientAddress: address };
    record(tx, asking, 'workbench.open', id, {});
    return { session: toOpenSession(session), cookie };
  });
}

/**
 * Signs a browser out: ends the session of its cookie, if that is open.
 * @throws ApiError `workbench_session_mismatch` if the tab shows another one
 */
export function signOut(
  { orm, ring }: CommandContext,
  { mode, cookie, sessionId, requestId, clientAddress }: SigningOut,
): Promise<void> {
  return transaction(orm, async (tx) => {
    const [open] = await lockByCookie(tx, { hashes: tokenHashes(ring, `workbench-${mode}`, cookie) });
    if (open === undefined) return;
    const { partner_id: partnerId, api_key_id: keyId, id } = open;
    if (id !== sessionId) throw new ApiError('workbench_session_mismatch');
    await endSession(tx, { partnerId, mode, id });
    record(tx, { partnerId, mode, keyId, requestId, clientAddress }, 'workbench.end', id, {});
  });
}

interface SigningOut {
  mode: Mode;
  cookie: string;
  /** The one that the tab shows. */
  sessionId: string;
  requestId: string;
  clientAddress: string;
}

/** The session that a cookie has open; null if it has none any more. */
export async function readOpenSession(
  { orm, ring }: CommandContext,
  mode: Mode,
  cookie: string,
): Promise<OpenSession | null> {
  const [row] = await selectByCookie(orm.em.fork(), {
    hashes: tokenHashes(ring, `workbench-${mode}`, cookie),
  });
  return row === undefined ? null : toOpenSession(row);
}

interface LockedSession {
  id: string;
  partner_id: string;
  mode: Mode;
  api_key_id: string;
  scopes: string[];
  expires_at: string;
  created_at: string;
  name: string;
}

const toOpenSession = (row: LockedSession): OpenSession => ({
  id: row.id,
  partnerId: row.partner_id,
  mode: row.mode,
  partner_name: row.name,
  scopes: row.scopes as Scope[],
  expires_at: row.expires_at,
  created_at: row.created_at,
});

const LOCKED = sql`s.id, s.partner_id, s.mode, s.api_key_id, s.scopes, s.expires_at, s.created_at, p.name`;
const WITH_KEY = sql`${SESSION_WITH_KEY} JOIN partner p ON p.id = s.partner_id`;

const lockByLink = writeStatement(
  (_, { hashes }: { hashes: Buffer[] }) => sql<
    LockedSession & { is_unopened: boolean; suspended_at: string | null; ip_allowlist: string[] | null }
  >`
  SELECT ${LOCKED}, s.cookie_hash IS NULL AND ${IS_OPEN} AS is_unopened, p.suspended_at, k.ip_allowlist
  FROM ${WITH_KEY} WHERE s.link_hash = ${anyOf(hashes)} FOR NO KEY UPDATE OF s`,
  { acrossTenants: 'key' },
);

const byCookie = (hashes: Buffer[]) => sql<LockedSession>`
  SELECT ${LOCKED} FROM ${WITH_KEY} WHERE s.cookie_hash = ${anyOf(hashes)} AND ${IS_OPEN}`;

const selectByCookie = readStatement((_, { hashes }: { hashes: Buffer[] }) => byCookie(hashes), {
  acrossTenants: 'key',
});

const lockByCookie = writeStatement(
  (_, { hashes }: { hashes: Buffer[] }) => sql<LockedSession>`${byCookie(hashes)} FOR NO KEY UPDATE OF s`,
  { acrossTenants: 'key' },
);

const setCookie = writeStatement(
  (_, { partnerId, mode, id, cookieHash }: Tenant & { id: string; cookieHash: Buffer }) => sql`
  UPDATE workbench_session SET cookie_hash = ${cookieHash}
  WHERE id = ${id} AND partner_id = ${partnerId} AND mode = ${mode}`,
);
