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
import { ApiError } from '../../domain/api-error.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { type HttpAddress, type ListeningServer, listenOnPort } from '../../platform/process/listen.ts';
import { presentError } from '../../requests/error-resource.ts';
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
): Promise<ListeningServer> {
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
  return listenOnPort(server, address, variable);
}

/** How long a client may keep its half of a connection open after we have closed ours. */
const LINGER_MS = 5_000;

/** For a request that HTTP/1.1 does not allow. */
function unreadable(): ApiError {
  return ApiError.ofField('request', 'the request is not valid HTTP/1.1');
}

/**
 * Answers input that Node's HTTP parser rejects, which never becomes a request. Requests before it on the
 * same connection get their responses, and then the connection is closed: clients that send several at once
 * are rare, and those that then send something unreadable are broken.
 */
function answerUnreadable(server: Server): void {
  const responses = new WeakMap<Duplex, ServerResponse>();
  const follow = (req: IncomingMessage, res: ServerResponse) => {
    responses.set(req.socket, res);
  };
  server.on('request', follow);
  server.on('checkExpectation', follow);

  const refused = new WeakSet<Duplex>();
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Each further unreadable chunk is another error.
    if (refused.has(socket)) return;
    refused.add(socket);
    const last = responses.get(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else if (last === undefined) close(socket, renderResponse(toApiError(error)));
    // What is unreadable is the next request, or the body of one that was answered without it.
    else if (last.writableFinished) close(socket, last.req.complete ? renderResponse(toApiError(error)) : '');
    else if (last.req.complete || last.headersSent) last.once('close', () => close(socket, ''));
    // It is the body of the last request, which can be answered unless there is another one before it.
    else if (last.socket === socket) close(socket, renderResponse(toApiError(error)));
    else socket.destroy();
  });
}

function close(socket: Duplex, answer: string): void {
  if (socket.writable) socket.end(answer);
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

function toApiError({ code }: NodeJS.ErrnoException): ApiError {
  if (code === 'HPE_HEADER_OVERFLOW') return new ApiError('headers_too_large');
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return new ApiError('body_too_large');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return ApiError.ofField('request', 'the request did not arrive within a minute');
  }
  return unreadable();
}

function renderResponse(error: ApiError): string {
  const requestId = newId('req');
  const body = JSON.stringify(presentError(error, requestId));
  return (
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
    `Request-Id: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  );
}

/**
 * Refuses requests that HTTP/1.1 forbids but Node's parser accepts: two Host headers or none, or a target
 * that is neither a path nor a URL.
 */
export const refuseUnreadable: Middleware<RequestState> = (ctx, next) => {
  const { httpVersion, headers, url = '' } = ctx.req;
  if (httpVersion === '1.1' && headers.host === undefined) throw unreadable();
  if (timesSent(ctx.req, 'host') > 1) throw ApiError.ofField('Host', 'Host must be sent once');
  if (!url.startsWith('/') && !URL.canParse(url)) throw unreadable();
  return next();
};
