import type { Context, Middleware } from 'koa';
import { checkAddress } from '../../accounts/allowlist-rules.ts';
import { ApiError } from '../../domain/api-error.ts';
import { isId } from '../../domain/ids.ts';
import type { Authenticate, KeyUses, SessionCookies } from './authenticate.ts';
import type { RequestState } from './log-request.ts';
import { type OwnSite, readCookies, requireOwnOrigin } from './own-site.ts';
import type { RateLimit } from './rate-limit.ts';
import { timesSent } from './validate.ts';

export interface IdentifyDependencies {
  authenticate: Authenticate;
  keyUses: KeyUses;
  rateLimit: RateLimit;
  site: OwnSite;
}

/**
 * The first steps of every request to /v1, whether or not its path exists: the key, the account's suspension,
 * the client's address and the rate limits of key and account (docs/partners/errors.md, "Which error comes
 * first").
 */
export function identify({
  authenticate,
  keyUses,
  rateLimit,
  site,
}: IdentifyDependencies): Middleware<RequestState> {
  return async (ctx, next) => {
    const { path, req, state } = ctx;
    if (!UNDER_V1.test(path)) return next();
    if (timesSent(req, 'authorization') > 1)
      throw new ApiError('invalid_api_key', { message: 'The Authorization header must be sent once.' });
    state.credential = req.headers.authorization ?? readSession(ctx, site);
    state.authenticatedAtMs = performance.now();
    const caller = await authenticate(state.credential);
    state.caller = caller;
    state.logFields.partnerId = caller.partnerId;
    state.logFields.mode = caller.mode;
    state.logFields.keyId = caller.keyId;
    if (caller.sessionId !== null) state.logFields.sessionId = caller.sessionId;
    keyUses.set(caller.keyId, Date.now());
    if (caller.isSuspended) throw new ApiError('account_suspended');
    checkAddress(caller.ipAllowlist, state.clientAddress);
    try {
      rateLimit.take(caller);
    } finally {
      ctx.set(rateLimit.headers(caller));
    }
    return next();
  };
}

/**
 * The cookies of a browser without an API key (docs/partners/workbench.md); undefined if it has none.
 * @throws ApiError `cross_origin`, `workbench_session_mismatch`
 */
function readSession(ctx: Context, site: OwnSite): SessionCookies | undefined {
  const tokens = readCookies(ctx, site);
  if (tokens.length === 0) return undefined;
  requireOwnOrigin(ctx, site);
  const sessionId = ctx.get('workbench-session');
  if (!isId('wbs', sessionId)) throw new ApiError('workbench_session_mismatch');
  return { sessionId, tokens };
}

/** The router matches paths in any case. */
const UNDER_V1 = /^\/v1(\/|$)/i;
