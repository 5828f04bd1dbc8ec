import Router from '@koa/router';
import type { Context } from 'koa';
import { z } from 'zod';
import { limitAddress } from '../api/http/address-limit.ts';
import { parseBody, readJsonBytes } from '../api/http/body.ts';
import type { RequestState } from '../api/http/log-request.ts';
import { readCookie, requireOwnOrigin, setCookie } from '../api/http/own-site.ts';
import type { UsageBuckets } from '../api/http/usage-buckets.ts';
import { parseQuery, validate } from '../api/http/validate.ts';
import { ApiError } from '../domain/api-error.ts';
import { isoTime } from '../domain/iso-time.ts';
import { Mode } from '../domain/mode.ts';
import { isTokenShaped } from '../platform/crypto/token.ts';
import { asService } from '../platform/process/work-context.ts';
import { presentError } from '../requests/error-resource.ts';
import { checkAddress } from './allowlist-rules.ts';
import {
  type OpenSession,
  openWorkbenchSession,
  ReplacesSession,
  readOpenSession,
  signOut,
} from './open-workbench-session.ts';
import type { WorkbenchSessionDependencies } from './workbench-sessions-routes.ts';

/** Whoever opens links takes turns at the database with the service's other work. */
const PART = 'workbench sessions';
/** How many links an address can try to open in a minute, in all processes together. */
const EXCHANGES_A_MINUTE = 10;
/** How often it can ask for its session, or sign out. */
const OTHERS_A_MINUTE = 120;

export interface WorkbenchPageDependencies extends WorkbenchSessionDependencies {
  usage: Pick<UsageBuckets, 'waitMs' | 'add'>;
}

const Exchange = z.strictObject({
  token: z.string().refine(isTokenShaped, 'must be what follows # in the link'),
  replace: z.boolean().default(false),
});
const OfMode = z.strictObject({ mode: Mode });

/**
 * What the workbench's page itself asks for, outside /v1: to exchange its link for a cookie, which session a
 * mode's cookie has, and to sign out.
 */
export function workbenchPageRoutes(dependencies: WorkbenchPageDependencies): Router<RequestState> {
  const { site, usage } = dependencies;
  const router = new Router<RequestState>();

  router.post('/workbench/session', async (ctx) => {
    const { requestId, clientAddress } = ctx.state;
    requireOwnOrigin(ctx, site);
    limitAddress(usage, 'workbench-link', clientAddress, EXCHANGES_A_MINUTE);
    const { token, replace } = checked(Exchange, parseBody(await readJsonBytes(ctx.req)), 'body');
    const cookieOf = (mode: Mode) => readCookie(ctx, site, mode);
    try {
      const opening = { token, replace, cookieOf, requestId, clientAddress };
      const { session, cookie } = await asService(PART, () => openWorkbenchSession(dependencies, opening));
      setCookie(ctx, site, session.mode, cookie);
      ctx.body = presentOpenSession(session);
    } catch (error) {
      if (!(error instanceof ReplacesSession)) throw error;
      const message = `The workbench of ${error.open.partner_name} is open in this browser. To replace it, send replace: true.`;
      ctx.status = 409;
      ctx.body = {
        ...presentError(new ApiError('invalid_state', { message }), requestId),
        workbench_session: presentOpenSession(error.open),
      };
    }
  });

  router.get('/workbench/session', async (ctx) => {
    const { mode, token } = cookieOfMode(ctx);
    const session =
      token === null ? null : await asService(PART, () => readOpenSession(dependencies, mode, token));
    if (session === null)
      throw new ApiError('invalid_api_key', {
        message: `No workbench session is open in this browser in ${mode} mode. Ask for a link.`,
      });
    ctx.body = presentOpenSession(session);
  });

  router.delete('/workbench/session', async (ctx) => {
    const { requestId, clientAddress } = ctx.state;
    const { mode, token } = cookieOfMode(ctx);
    if (token !== null) {
      const asking = {
        mode,
        cookie: token,
        sessionId: ctx.get('workbench-session'),
        requestId,
        clientAddress: checkAddress(null, clientAddress),
      };
      await asService(PART, () => signOut(dependencies, asking));
    }
    setCookie(ctx, site, mode, null);
    ctx.status = 204;
  });

  return router;

  function cookieOfMode(ctx: Context & { state: RequestState }): { mode: Mode; token: string | null } {
    requireOwnOrigin(ctx, site);
    limitAddress(usage, 'workbench', ctx.state.clientAddress, OTHERS_A_MINUTE);
    const query = parseQuery(ctx.querystring);
    const { mode } = checked(OfMode, query.value, 'query');
    return { mode, token: readCookie(ctx, site, mode) };
  }
}

function checked<T>(schema: z.ZodType<T>, given: unknown, where: 'body' | 'query'): T {
  const { value, issues } = validate(schema, given, where);
  if (issues.length > 0) throw ApiError.ofFields(issues);
  return value;
}

const presentOpenSession = (session: OpenSession) => ({
  object: 'workbench_session',
  id: session.id,
  account: { id: session.partnerId, name: session.partner_name },
  mode: session.mode,
  scopes: session.scopes,
  expires_at: isoTime(session.expires_at),
  created: isoTime(session.created_at),
});
