import type { RouterContext, RouterMiddleware } from '@koa/router';
import { ApiError } from '../../domain/api-error.ts';
import type { Scope } from '../../domain/scope.ts';
import { asAccount } from '../../process/work-context.ts';
import type { Admission } from './admission.ts';
import type { Authenticate } from './authenticate.ts';
import { readJsonBody } from './body.ts';
import type { RequestState } from './log-request.ts';
import type { Reply, Route } from './route.ts';
import { CLIENT_CLOSED_REQUEST, streamReply } from './stream-reply.ts';
import { type Checked, parseQuery, readIdempotencyKey, refuseRepeated, validate } from './validate.ts';

export interface GuardDependencies {
  admission: Admission;
  authenticate: Authenticate;
}

/** A key that was looked up longer ago is looked up again before the request begins. */
const RECHECK_MS = 2_000;

/**
 * What a /v1 request goes through once its caller is known (api/http/identify.ts): mode, scope, admission, validation, its turn,
 * the key again if it was revoked or suspended meanwhile, the route's handler, and the response.
 * @throws Error for a route that doesn't say which scope it needs
 */
export function guard(
  { declaration, handle }: Route,
  { admission, authenticate }: GuardDependencies,
): RouterMiddleware<RequestState> {
  const { method, path, scope } = declaration;
  if (scope === undefined) throw new Error(`${method.toUpperCase()} ${path} doesn't declare its scope`);
  return async (ctx: RouterContext<RequestState>) => {
    const { req, state } = ctx;
    const { caller, clientAddress } = state;
    if (caller === undefined || clientAddress === null)
      throw new Error(`${path} was reached without a caller`);
    if (declaration.mode !== undefined && declaration.mode !== caller.mode) {
      throw new ApiError(declaration.mode === 'test' ? 'live_key_not_allowed' : 'test_key_not_allowed');
    }
    if (scope !== null && !caller.scopes.includes(scope)) throw insufficientScope(scope);
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
      // The body and the turn can take a minute, and a revoked key starts nothing 5 s later (docs/partners/keys-and-modes.md).
      if (performance.now() - state.authenticatedAtMs > RECHECK_MS) {
        const { isSuspended } = await authenticate(req.headers.authorization);
        if (isSuspended) throw new ApiError('account_suspended');
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
    if ('stream' in reply) {
      await asAccount(caller, () => streamReply(ctx, reply));
      return;
    }
    ctx.status = reply.status;
    if (reply.headers) ctx.set(reply.headers);
    if (reply.body === null) return;
    ctx.type = 'application/json';
    ctx.body = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body);
  };
}

const insufficientScope = (scope: Scope) =>
  new ApiError('insufficient_scope', {
    message: `This API key does not have the scope ${scope}, which this endpoint needs, and this request did nothing. Use a key that has it.`,
  });
