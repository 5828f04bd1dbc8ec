import type { RouterContext, RouterMiddleware } from '@koa/router';
import type { Scope } from '../../accounts/scope-rules.ts';
import { ApiError } from '../../domain/api-error.ts';
import { asAccount } from '../../platform/process/work-context.ts';
import type { Admission } from './admission.ts';
import type { Authenticate, Credential } from './authenticate.ts';
import { parseBody, readJsonBytes } from './body.ts';
import { toJson } from './list-envelope.ts';
import type { RequestState } from './log-request.ts';
import type { Reply, Route } from './route.ts';
import type { StorageBudget } from './storage-budget.ts';
import { CLIENT_CLOSED_REQUEST, streamReply } from './stream-reply.ts';
import type { Unsent } from './unsent.ts';
import { type Checked, parseQuery, readIdempotencyKey, refuseRepeated, validate } from './validate.ts';

export interface GuardDependencies {
  admission: Admission;
  authenticate: Authenticate;
  storage: StorageBudget;
  unsent: Unsent;
}

/**
 * A key that was looked up longer ago is looked up again before the request begins; while a report is sent,
 * this often.
 */
const RECHECK_MS = 2_000;

/**
 * What a /v1 request goes through once its caller is known (api/http/identify.ts): mode, scope, admission,
 * the body's bytes, its turn, the key again if it was revoked or suspended meanwhile, validation, the route's
 * handler, and the response.
 * @throws Error for a route that doesn't say which scope it needs
 */
export function guard(
  { declaration, handle }: Route,
  { admission, authenticate, storage, unsent }: GuardDependencies,
): RouterMiddleware<RequestState> {
  const { method, path, scope, alsoScope } = declaration;
  // They keep their responses, and most write an event that is about as long.
  const stores = declaration.idempotencyKey !== undefined;
  if (scope === undefined) throw new Error(`${method.toUpperCase()} ${path} doesn't declare its scope`);
  return async (ctx: RouterContext<RequestState>) => {
    const { req, state } = ctx;
    const { caller, clientAddress } = state;
    if (caller === undefined || clientAddress === null)
      throw new Error(`${path} was reached without a caller`);
    if (declaration.mode !== undefined && declaration.mode !== caller.mode) {
      throw new ApiError(declaration.mode === 'test' ? 'live_key_not_allowed' : 'test_key_not_allowed');
    }
    for (const needed of [scope, alsoScope]) {
      if (needed != null && !caller.scopes.includes(needed)) throw insufficientScope(needed);
    }
    const visit = admission.arrive(caller);
    ctx.res.once('close', () => visit.leave());
    let reply: Reply;
    let text: string | null = null;
    const transferred = { bodyBytes: 0, responseBytes: 0 };
    try {
      refuseRepeated(req);
      const idempotencyKey = readIdempotencyKey(req, declaration.idempotencyKey);
      // Read the body before the request's turn, so that a slow one does not delay the account's other
      // requests.
      const bytes =
        declaration.body === undefined ? null : await readJsonBytes(req, declaration.bodyIsOptional);
      transferred.bodyBytes = bytes?.length ?? 0;
      const begun = await visit.begin(declaration.liveIsWorkflow === true && caller.mode === 'live');
      // If a request was pipelined behind another, only its socket shows that the client is gone.
      if (!begun || req.socket.destroyed) {
        ctx.status = CLIENT_CLOSED_REQUEST;
        return;
      }
      // The body and the turn can take a minute, and a revoked key starts nothing 5 s later
      // (docs/partners/keys-and-modes.md).
      if (performance.now() - state.authenticatedAtMs > RECHECK_MS) {
        const { isSuspended } = await authenticate(state.credential);
        if (isSuspended) throw new ApiError('account_suspended');
      }
      unsent.check(caller);
      if (stores) storage.check(caller);
      // In its turn, since a large body takes milliseconds, in which no other request is served.
      const parsed = parseQuery(ctx.querystring);
      const query = validate(declaration.query, parsed.value, 'query');
      const body: Checked<unknown> =
        declaration.body === undefined || bytes === null
          ? { value: undefined, issues: [] }
          : validate(declaration.body, parseBody(bytes, declaration.bodyIsOptional), 'body');
      const issues = [...parsed.issues, ...query.issues, ...body.issues];
      if (issues.length > 0) throw ApiError.ofFields(issues);
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
      if (!('stream' in reply) && reply.body !== null && reply.body !== undefined) {
        text = `${typeof reply.body === 'string' ? reply.body : toJson(reply.body)}\n`;
        transferred.responseBytes = Buffer.byteLength(text);
        if (stores) storage.add(caller, 2 * transferred.responseBytes);
      }
    } finally {
      visit.end(transferred);
    }
    if ('stream' in reply) {
      const refused = new AbortController();
      const recheck = setInterval(async () => {
        if (await isRefused(authenticate, state.credential)) refused.abort();
      }, RECHECK_MS);
      try {
        await asAccount(caller, () => streamReply(ctx, reply, refused.signal));
      } finally {
        clearInterval(recheck);
      }
      return;
    }
    ctx.status = reply.status;
    if (reply.headers) ctx.set(reply.headers);
    if (text === null) return;
    ctx.type = 'application/json';
    unsent.add(caller, transferred.responseBytes, req, ctx.res);
    ctx.body = text;
  };
}

/** Whether a key that was good is revoked, has expired, or is a suspended account's. */
async function isRefused(authenticate: Authenticate, credential: Credential): Promise<boolean> {
  try {
    return (await authenticate(credential)).isSuspended;
  } catch (error) {
    // If the database is away, nothing says that the key is not good any more.
    return error instanceof ApiError && error.code === 'invalid_api_key';
  }
}

const insufficientScope = (scope: Scope) =>
  new ApiError('insufficient_scope', {
    message: `This API key does not have the scope ${scope}, which this endpoint needs, and this request did nothing. Use a key that has it.`,
  });
