import type { Duplex } from 'node:stream';
import { newId } from '../db/new-id.ts';
import { ApiError } from '../domain/api-error.ts';
import { presentError } from '../domain/error-body.ts';

/** For a request that HTTP/1.1 does not allow. */
export function unreadable(): ApiError {
  return ApiError.ofField('request', 'the request is not readable HTTP/1.1, or its headers are too large');
}

/** What Node's HTTP parser refuses never becomes a request; it gets the error body all the same. */
export function answerUnreadable(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const requestId = newId('req');
  const body = JSON.stringify(presentError(unreadable(), requestId));
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json; charset=utf-8\r\nRequest-Id: ${requestId}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
