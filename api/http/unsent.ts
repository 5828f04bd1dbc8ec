import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError } from '../../domain/api-error.ts';
import type { Tenant } from '../../domain/mode.ts';

/** What partners are promised in docs/partners/errors.md. */
export interface ResponseLimits {
  /** How long a client may take nothing of a response. */
  stallMs: number;
  /** How long it may take for all of it. */
  maxMs: number;
  /** How much of an account's responses may wait for their readers: a few of the longest. */
  maxUnsentBytes: number;
}

/**
 * Ends the connection of a client that does not read its response in time. Call it when the response is about
 * to be sent.
 */
export function limitReading(
  { socket }: IncomingMessage,
  res: ServerResponse,
  { stallMs, maxMs }: ResponseLimits,
): void {
  if (socket.destroyed) return;
  const tooLong = setTimeout(() => socket.destroy(), maxMs);
  res.once('close', () => clearTimeout(tooLong));
  // Node destroys a socket whose time is over. A pipelined request's response gets the socket after those
  // before it.
  const begin = () => socket.setTimeout(stallMs);
  if (res.socket === null) res.once('socket', begin);
  else begin();
  // Before Node's own listener, which gives an idle connection another time.
  res.prependOnceListener('finish', () => socket.setTimeout(0));
}

export interface Unsent {
  /** @throws ApiError `rate_limited` if too much of what the account asked for has not been read */
  check(account: Tenant): void;
  /** Counts a response until it has been read, or its connection ends. */
  add(account: Tenant, bytes: number, req: IncomingMessage, res: ServerResponse): void;
}

/** Counts, for each account, what its clients have not read yet. */
export function countUnsent({ maxUnsentBytes }: ResponseLimits): Unsent {
  const unsent = new Map<string, number>();
  /** What to do for the responses of each connection once it closes. */
  const waiting = new WeakMap<Socket, Set<() => void>>();
  const nameOf = ({ partnerId, mode }: Tenant) => `${partnerId}/${mode}`;
  return {
    check(account) {
      if ((unsent.get(nameOf(account)) ?? 0) <= maxUnsentBytes) return;
      throw new ApiError('rate_limited', {
        message:
          "This account's clients have not read the responses to its earlier requests in this mode, and this request was not " +
          'started. Read them, or close their connections, and retry with the same Idempotency-Key.',
        retryAfterSeconds: 1,
      });
    },
    add(account, bytes, { socket }, res) {
      if (socket.destroyed) return;
      const name = nameOf(account);
      unsent.set(name, (unsent.get(name) ?? 0) + bytes);
      const ofSocket = waiting.get(socket) ?? releaseOnClose(socket);
      const release = () => {
        ofSocket.delete(release);
        res.off('close', release);
        const left = (unsent.get(name) ?? 0) - bytes;
        if (left > 0) unsent.set(name, left);
        else unsent.delete(name);
      };
      ofSocket.add(release);
      res.once('close', release);
    },
  };

  /** A pipelined response that never got the socket isn't closed with it. */
  function releaseOnClose(socket: Socket): Set<() => void> {
    const releases = new Set<() => void>();
    waiting.set(socket, releases);
    socket.once('close', () => {
      for (const release of releases) release();
    });
    return releases;
  }
}
