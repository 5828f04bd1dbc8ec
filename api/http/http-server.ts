import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Duplex } from 'node:stream';
import type Koa from 'koa';
import type { Middleware } from 'koa';
import { newId } from '../../crypto/new-id.ts';
import { ApiError } from '../../domain/api-error.ts';
import { type HttpAddress, type Listening, listen } from '../../process/listen.ts';
import { presentError } from '../../resources/error.ts';
import type { RequestState } from './log-request.ts';
import { timesSent } from './validate.ts';

/**
 * Serves an app over HTTP/1.1.
 * @param variable the environment variable that sets the port
 * @throws StartRefused if the address is not available
 */
export function serveHttp(
  app: Koa<RequestState>,
  address: HttpAddress,
  variable: string,
): Promise<Listening> {
  const answer = app.callback();
  // Node would answer a missing Host and an unknown Expect itself, without the error body.
  const server = createServer(
    { requestTimeout: 60_000, keepAliveTimeout: 75_000, requireHostHeader: false, maxHeaderSize: 16_384 },
    answer,
  );
  server.on('checkExpectation', answer);
  answerUnreadable(server);
  // The size of headers is limited. If their number were too, Node would silently drop the rest.
  server.maxHeadersCount = 0;
  return listen(server, address, variable);
}

/** How long a client may keep its half of a connection open after we have closed ours. */
const LINGER_MS = 5_000;

/** For a request that HTTP/1.1 does not allow. */
function unreadable(): ApiError {
  return ApiError.ofField('request', 'the request is not valid HTTP/1.1');
}

interface Exchange {
  req: IncomingMessage;
  res: ServerResponse;
}

/**
 * Answers input that Node's HTTP parser rejects, which never becomes a request. The error body follows the responses to
 * earlier requests on the same connection.
 */
function answerUnreadable(server: Server): void {
  const underWay = new WeakMap<Duplex, Exchange[]>();
  const follow = (req: IncomingMessage, res: ServerResponse) => {
    const before = underWay.get(req.socket) ?? [];
    underWay.set(req.socket, [...before.filter((exchange) => !isOver(exchange.res)), { req, res }]);
  };
  server.on('request', follow);
  server.on('checkExpectation', follow);

  const refused = new WeakSet<Duplex>();
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    // Each further unreadable chunk is another error.
    if (refused.has(socket)) return;
    refused.add(socket);
    void refuse(socket, errorOf(error), underWay.get(socket) ?? []);
  });
}

async function refuse(socket: Duplex, error: ApiError, exchanges: Exchange[]): Promise<void> {
  // Unreadable bytes can be the body of the last request, which is waiting for it or was answered without it.
  const answers = exchanges.filter(({ req, res }) => req.complete || res.headersSent);
  await Promise.all(answers.map(({ res }) => isOver(res) || once(res, 'close')));
  const isAnswered = exchanges.some(({ req, res }) => !req.complete && res.headersSent);
  if (socket.writable) socket.end(isAnswered ? undefined : answerOf(error));
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

function isOver(res: ServerResponse): boolean {
  return res.writableFinished || res.destroyed;
}

function errorOf({ code }: NodeJS.ErrnoException): ApiError {
  if (code === 'HPE_HEADER_OVERFLOW') return new ApiError('headers_too_large');
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return new ApiError('body_too_large');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return ApiError.ofField('request', 'the request did not arrive within a minute');
  }
  return unreadable();
}

function answerOf(error: ApiError): string {
  const requestId = newId('req');
  const body = JSON.stringify(presentError(error, requestId));
  return (
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
    `Request-Id: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  );
}

/**
 * Refuses requests that HTTP/1.1 forbids but Node's parser accepts: two Host headers or none, or a target that is neither a
 * path nor a URL.
 */
export const refuseUnreadable: Middleware<RequestState> = (ctx, next) => {
  const { httpVersion, headers, url = '' } = ctx.req;
  if (httpVersion === '1.1' && headers.host === undefined) throw unreadable();
  if (timesSent(ctx.req, 'host') > 1) throw ApiError.ofField('Host', 'Host must be sent once');
  if (!url.startsWith('/') && !URL.canParse(url)) throw unreadable();
  return next();
};
