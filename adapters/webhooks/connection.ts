import { Client } from 'undici';
import type { WebhookTarget } from '../../domain/webhook-url.ts';
import { connectChecked, type Network } from './connect-checked.ts';
import { connectFailure } from './delivery-failure.ts';

/** How long a connection waits for its next event, where the receiver does not say. */
const IDLE_MS = 10_000;
const LONGEST_IDLE_MS = 30_000;
const LARGEST_HEADERS_BYTES = 16_384;

/** At most one connection to a receiver; it is made by the first request over it. */
export interface Connection {
  readonly client: Client;
  readonly createdAtMs: number;
  /** Of the attempt that has it; making the connection is part of the attempt. */
  deadlineAtMs: number;
  /** Whether an earlier attempt got its answer over it, so that the receiver may have closed it since. */
  used: boolean;
  destroy(): void;
}

/** undici's client of one connection, which is made by `connectChecked` and in no other way. */
export function createConnection(target: WebhookTarget, network: Network): Connection {
  const abandoned = new AbortController();
  const client = new Client(target.origin, {
    connect: (_options, callback) => {
      connection.used = false;
      const { deadlineAtMs } = connection;
      connectChecked(target, network, { deadlineAtMs, signal: abandoned.signal }).then(
        (socket) => callback(null, socket),
        (error) => callback(connectFailure(error), null),
      );
    },
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: LONGEST_IDLE_MS,
    maxHeaderSize: LARGEST_HEADERS_BYTES,
    // `exchange` has the one deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const connection: Connection = {
    client,
    createdAtMs: performance.now(),
    deadlineAtMs: 0,
    used: false,
    destroy: () => {
      abandoned.abort();
      client.destroy();
    },
  };
  return connection;
}
