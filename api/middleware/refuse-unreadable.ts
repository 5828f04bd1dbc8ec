import type { Middleware } from 'koa';
import { unreadable } from '../answer-unreadable.ts';
import type { RequestState } from '../request-state.ts';

/** What HTTP/1.1 does not allow and Node's parser lets through: no Host, or a target that is neither path nor URL. */
export const refuseUnreadable: Middleware<RequestState> = (ctx, next) => {
  const { httpVersion, headers, url = '' } = ctx.req;
  if (httpVersion === '1.1' && headers.host === undefined) throw unreadable();
  if (!url.startsWith('/') && !URL.canParse(url)) throw unreadable();
  return next();
};
