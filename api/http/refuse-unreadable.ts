import type { Middleware } from 'koa';
import { ApiError } from '../../domain/api-error.ts';
import { unreadable } from './answer-unreadable.ts';
import { timesSent } from './headers.ts';
import type { RequestState } from './request-state.ts';

/** What HTTP/1.1 does not allow and Node's parser lets through: no Host or two, or a target that is neither path nor URL. */
export const refuseUnreadable: Middleware<RequestState> = (ctx, next) => {
  const { httpVersion, headers, url = '' } = ctx.req;
  if (httpVersion === '1.1' && headers.host === undefined) throw unreadable();
  if (timesSent(ctx.req, 'host') > 1) throw ApiError.ofField('Host', 'Host must be sent once');
  if (!url.startsWith('/') && !URL.canParse(url)) throw unreadable();
  return next();
};
