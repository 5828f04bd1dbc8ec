import type { Context } from 'koa';
import rawBody from 'raw-body';
import { z } from 'zod';

/** The body of a request in this shape. Answers 400 where it has another, 413 over 16 KiB. */
export async function readRequest<Body>(ctx: Context, shape: z.ZodType<Body, unknown>): Promise<Body> {
  const body = await rawBody(ctx.req, { limit: '16kb', encoding: 'utf8' });
  const request = JsonText.pipe(shape).safeParse(body);
  if (!request.success) return ctx.throw(400, z.prettifyError(request.error));
  return request.data;
}

const JsonText = z.string().transform((text, ctx): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    ctx.addIssue({ code: 'custom', message: 'must be JSON' });
    return z.NEVER;
  }
});
