import { createHash, timingSafeEqual } from 'node:crypto';
import type { Middleware } from 'koa';

/** Lets requests with the bearer token through; compares in constant time. Others on the machine can reach the port. */
export function authenticate(bearerToken: string): Middleware {
  const expected = digest(`Bearer ${bearerToken}`);
  return async (ctx, next) => {
    if (!timingSafeEqual(digest(ctx.get('authorization')), expected)) {
      ctx.throw(401, 'Send the bearer token derived from the secret this network was started with.');
    }
    await next();
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
