import type { Middleware } from 'koa';
import { ApiError } from '../../domain/api-error.ts';
import { isInBlock, parseAddress } from '../../domain/ip-address.ts';
import type { Authenticate, Caller, KeyUses } from './authenticate.ts';
import type { RequestState } from './log-request.ts';
import type { RateLimit } from './rate-limit.ts';
import { timesSent } from './validate.ts';

export interface IdentifyDependencies {
  authenticate: Authenticate;
  keyUses: KeyUses;
  rateLimit: RateLimit;
}

/** The trusted proxies are ours, so this is our mistake and not the partner's. */
const UNREADABLE_ADDRESS =
  "X-Forwarded-For doesn't end in your IP address, so we can't tell where the request comes from: it was not started. Contact us";

/**
 * The first steps of every request to /v1, whether or not its path exists: the key, the account's suspension,
 * the client's address and the rate limits of key and account (docs/partners/errors.md, "Which error comes
 * first").
 */
export function identify({
  authenticate,
  keyUses,
  rateLimit,
}: IdentifyDependencies): Middleware<RequestState> {
  return async (ctx, next) => {
    const { path, req, state } = ctx;
    if (!UNDER_V1.test(path)) return next();
    if (timesSent(req, 'authorization') > 1)
      throw new ApiError('invalid_api_key', { message: 'The Authorization header must be sent once.' });
    state.authenticatedAtMs = performance.now();
    const caller = await authenticate(req.headers.authorization);
    state.caller = caller;
    state.logFields.partnerId = caller.partnerId;
    state.logFields.mode = caller.mode;
    state.logFields.keyId = caller.keyId;
    keyUses.set(caller.keyId, Date.now());
    if (caller.isSuspended) throw new ApiError('account_suspended');
    checkAddress(caller, state.clientAddress);
    try {
      rateLimit.take(caller);
    } finally {
      ctx.set(rateLimit.headers(caller));
    }
    return next();
  };
}

function checkAddress({ ipAllowlist }: Caller, clientAddress: string | null): void {
  if (clientAddress === null) throw new ApiError('ip_not_allowed', { message: UNREADABLE_ADDRESS });
  if (ipAllowlist === null) return;
  const address = parseAddress(clientAddress);
  if (address !== null && ipAllowlist.some((block) => isInBlock(address, block))) return;
  throw new ApiError('ip_not_allowed', {
    message:
      `This request comes from ${clientAddress}, where its API key can't be used: the address is not in the key's ` +
      'ip_allowlist. The request did nothing.',
  });
}

/** The router matches paths in any case. */
const UNDER_V1 = /^\/v1(\/|$)/i;
