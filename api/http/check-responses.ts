import type { RouterContext, RouterMiddleware } from '@koa/router';
import { ApiError } from '../../domain/api-error.ts';
import { ERRORS } from '../../domain/error-catalogue.ts';
import { ErrorBody } from '../../requests/error-resource.ts';
import type { RequestState } from './log-request.ts';
import { type Declaration, declaredErrorCodes } from './route.ts';
import { CLIENT_CLOSED_REQUEST } from './stream-reply.ts';

/**
 * For tests (CHECK_ANSWERS): checks every response of a route against its declaration. A response that is not
 * declared becomes a 500 that names the route, the status and the field.
 */
export function checkResponses(
  declaration: Declaration,
  answer: RouterMiddleware<RequestState>,
): RouterMiddleware<RequestState> {
  const { method, path } = declaration;
  // Every route refuses a header that is sent twice, even one it does not use (docs/partners/errors.md).
  const codes: readonly string[] = [...declaredErrorCodes(declaration), 'idempotency_key_invalid'];
  return async (ctx: RouterContext<RequestState>, next) => {
    try {
      await answer(ctx, next);
    } catch (error) {
      if (!(error instanceof ApiError) || codes.includes(error.code)) throw error;
      throw wrong(error.status, `error.code: ${error.code} is not declared`);
    }
    if (ctx.status === CLIENT_CLOSED_REQUEST) return;
    // A stream has been sent already.
    if (declaration.contentType !== undefined && ctx.status === 200) return;
    const text = typeof ctx.body === 'string' ? ctx.body : 'null';
    const problem = findProblem(ctx.status, JSON.parse(text));
    if (problem !== null) throw wrong(ctx.status, problem);
  };

  function wrong(status: number, problem: string): ApiError {
    const route = `${method.toUpperCase()} ${path}`;
    return new ApiError('internal_error', {
      message: `${route} answered ${status}, which is not what it declares: ${problem}`,
    });
  }

  function findProblem(status: number, body: unknown): string | null {
    const schema = declaration.responses[status] ?? (status >= 400 ? ErrorBody : undefined);
    if (schema === undefined) return 'the status is not declared';
    const { success, data, error } = schema.safeParse(body);
    if (!success) {
      const [issue] = error.issues;
      return `${issue?.path.join('.')}: ${issue?.message}`;
    }
    const undeclared = undeclaredField(body, data);
    if (undeclared !== null) return `${undeclared}: the field is not declared`;
    if (schema !== ErrorBody) return null;
    const { code } = (data as ErrorBody).error;
    return codes.includes(code) && ERRORS[code].status === status
      ? null
      : `error.code: ${code} is not declared`;
  }
}

/** The path of the first field of `body` that its schema dropped when it parsed it. */
function undeclaredField(body: unknown, read: unknown): string | null {
  if (typeof body !== 'object' || body === null || typeof read !== 'object' || read === null) return null;
  for (const [name, value] of Object.entries(body)) {
    if (!(name in read)) return name;
    const below = undeclaredField(value, (read as Record<string, unknown>)[name]);
    if (below !== null) return `${name}.${below}`;
  }
  return null;
}
