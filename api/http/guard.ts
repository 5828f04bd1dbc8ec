import type { RouterContext, RouterMiddleware } from '@koa/router';
import { ApiError } from '../../domain/api-error.ts';
import { asAccount } from '../../process/work-context.ts';
import type { Admission } from './admission.ts';
import type { Authenticate, KeyUses } from './authenticate.ts';
import { readJsonBody } from './body.ts';
import type { RequestState } from './log-request.ts';
import type { RateLimit } from './rate-limit.ts';
import type { Reply, Route } from './route.ts';
import {
  type Checked,
  parseQuery,
  readIdempotencyKey,
  refuseRepeated,
  timesSent,
  validate,
} from './validate.ts';

/** Only for the log; proxies use this status too. */
export const CLIENT_CLOSED_REQUEST = 499;

/** The trusted proxies are ours, so this is our mistake and not the partner's. */
const UNREADABLE_ADDRESS =
  "X-Forwarded-For doesn't end in your IP address, so we can't tell where the request comes from: it was not started. Contact us";

export interface GuardDependencies {
  authenticate: Authenticate;
  keyUses: KeyUses;
  rateLimit: RateLimit;
  admission: Admission;
}

/**
 * What every /v1 request goes through: authentication, suspension, the client's address, rate limit, mode, admission,
 * validation, its turn, the route's handler, and the response.
 */
export function guard(
  { declaration, handle }: Route,
  { authenticate, keyUses, rateLimit, admission }: GuardDependencies,
): RouterMiddleware<RequestState> {
  return async (ctx: RouterContext<RequestState>) => {
    const { req, state } = ctx;
    if (timesSent(req, 'authorization') > 1)
      throw new ApiError('invalid_api_key', { message: 'The Authorization header must be sent once.' });
    const caller = await authenticate(req.headers.authorization);
    state.logFields.partnerId = caller.partnerId;
    state.logFields.mode = caller.mode;
    state.logFields.keyId = caller.keyId;
    keyUses.set(caller.keyId, Date.now());
    if (caller.isSuspended) throw new ApiError('account_suspended');
    const { clientAddress } = state;
    if (clientAddress === null) throw ApiError.ofField('X-Forwarded-For', UNREADABLE_ADDRESS);
    rateLimit.take(caller.keyId);
    if (declaration.mode !== undefined && declaration.mode !== caller.mode) {
      throw new ApiError(declaration.mode === 'test' ? 'live_key_not_allowed' : 'test_key_not_allowed');
    }
    const visit = admission.arrive(caller);
    ctx.res.once('close', () => visit.leave());
    let reply: Reply;
    try {
      refuseRepeated(req);
      const idempotencyKey = readIdempotencyKey(req, declaration.idempotencyKey);
      const parsed = parseQuery(ctx.querystring);
      const query = validate(declaration.query, parsed.value, 'query');
      // Read the body before the request's turn, so that a slow one does not delay the account's other requests.
      const body: Checked<unknown> =
        declaration.body === undefined
          ? { value: undefined, issues: [] }
          : validate(declaration.body, await readJsonBody(req, declaration.bodyIsOptional), 'body');
      const issues = [...parsed.issues, ...query.issues, ...body.issues];
      if (issues.length > 0) throw ApiError.ofFields(issues);

      const begun = await visit.begin(declaration.liveIsWorkflow === true && caller.mode === 'live');
      // If a request was pipelined behind another, only its socket shows that the client is gone.
      if (!begun || req.socket.destroyed) {
        ctx.status = CLIENT_CLOSED_REQUEST;
        return;
      }
      reply = await asAccount(caller, () =>
        handle({
          caller,
          requestId: state.requestId,
          clientAddress,
          method: declaration.method,
          params: ctx.params,
          path: ctx.path,
          query: query.value,
          body: body.value,
          idempotencyKey,
          passTurn: () => visit.passTurn(),
          log: (fields) => Object.assign(state.logFields, fields),
        }),
      );
    } finally {
      visit.end();
    }
    ctx.status = reply.status;
    if (reply.headers) ctx.set(reply.headers);
    if (reply.body === null) return;
    ctx.type = 'application/json';
    ctx.body = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body);
  };
}
