import { createServer } from 'node:http';
import type Koa from 'koa';
import { answerUnreadable } from './answer-unreadable.ts';
import type { RequestState } from './request-state.ts';

/** How long the requests under way may take once the server is to stop. */
const LONGEST_STOP_MS = 10_000;

export interface HttpAddress {
  host: string;
  port: number;
}

/** Serves an app over HTTP/1.1. @returns what takes no more connections and ends the requests under way, within 10 s */
export async function serveHttp(
  app: Koa<RequestState>,
  { host, port }: HttpAddress,
): Promise<() => Promise<void>> {
  const answer = app.callback();
  // Node would answer a missing Host and an unknown Expect by itself, without the error body.
  const server = createServer(
    { requestTimeout: 60_000, keepAliveTimeout: 75_000, requireHostHeader: false, maxHeaderSize: 16_384 },
    answer,
  );
  server.on('checkExpectation', answer);
  answerUnreadable(server);
  // Their bytes are limited; of more than these, Node would leave out the rest without a word.
  server.maxHeadersCount = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeIdleConnections();
    const impatience = setTimeout(() => server.closeAllConnections(), LONGEST_STOP_MS);
    await closed;
    clearTimeout(impatience);
  };
}
