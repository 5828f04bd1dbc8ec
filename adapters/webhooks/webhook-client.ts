import { LRUCache } from 'lru-cache';
import { parseWebhookUrl } from '../../domain/webhook-url.ts';
import type { Network } from './connect-checked.ts';
import { type Connection, createConnection } from './connection.ts';
import { exchangeFailure } from './delivery-failure.ts';
import { type DeliveryResult, failed, resultOf } from './delivery-result.ts';
import { createEndpointConnections, type EndpointConnections } from './endpoint-connections.ts';
import { type Exchange, exchange } from './exchange.ts';
import { type OpenSocket, openSocket } from './open-socket.ts';
import { createHostResolver, type ResolveHost } from './resolve-host.ts';

/** Endpoints whose connections are kept; the one that was quiet for longest goes first. */
const ENDPOINTS_KEPT = 500;

export interface WebhookClientOptions {
  /** From the look-up to the status line. */
  timeoutMs: number;
  /** Lets http to loopback through, and nothing else (operations.md, WEBHOOK_ALLOW_LOOPBACK_HTTP). */
  allowLoopbackHttp: boolean;
  /** Connections to one endpoint; an attempt above it waits, and its time only begins when it has one. */
  connectionsPerEndpoint?: number;
  /** Certificates to trust instead of the public ones, PEM. */
  ca?: string;
  resolve?: ResolveHost;
  /** Opens a connection to an address that was checked. Tests lead it to a receiver of theirs; nothing else sets it. */
  openSocket?: OpenSocket;
}

export interface Delivery {
  url: string;
  /** Sent as it is, in UTF-8. */
  body: string;
  /** Those of `signEvent`. */
  headers: Readonly<Record<string, string>>;
}

export interface WebhookClient {
  /**
   * Whatever a receiver, its name server or its network does is a result.
   * @throws only what is not about the receiver: this machine is out of sockets, a header that can't be sent, closed
   */
  deliver(delivery: Delivery): Promise<DeliveryResult>;
  /** Waits for the attempts under way, then ends all connections. */
  close(): Promise<void>;
}

/**
 * Posts events to addresses that partners chose (docs/decisions/outbound-safety.md). Reads no environment: a proxy, or
 * NODE_TLS_REJECT_UNAUTHORIZED, changes nothing here.
 */
export function createWebhookClient(options: WebhookClientOptions): WebhookClient {
  const network: Network = {
    resolve: options.resolve ?? createHostResolver(),
    openSocket: options.openSocket ?? openSocket,
    ca: options.ca,
  };
  const endpoints = new LRUCache<string, EndpointConnections>({
    max: ENDPOINTS_KEPT,
    dispose: (connections) => connections.retire(),
  });
  const underWay = new Set<Promise<DeliveryResult>>();
  let closed = false;

  const attempt = async ({ url, body, headers }: Delivery): Promise<DeliveryResult> => {
    const target = parseWebhookUrl(url, options);
    if ('problem' in target) return failed(target.problem, 0);
    // By endpoint, not by origin: where many partners use one host, one that hangs must not take the others' places.
    let connections = endpoints.get(target.href);
    if (connections === undefined) {
      const limit = options.connectionsPerEndpoint ?? 32;
      connections = createEndpointConnections(() => createConnection(target, network), limit);
      endpoints.set(target.href, connections);
    }
    let connection = await connections.acquire();
    const startedAtMs = performance.now();
    const post = () => {
      connection.deadlineAtMs = startedAtMs + options.timeoutMs;
      const request = { method: 'POST', path: target.path, headers: { ...FIXED_HEADERS, ...headers }, body };
      return exchange(connection.client, request, connection.deadlineAtMs);
    };
    let reusable = false;
    try {
      let answer = await post();
      if (wasStale(answer, connection)) {
        connection = connections.replace(connection);
        answer = await post();
      }
      reusable = answer.status !== null && answer.ended;
      return resultOf(answer, startedAtMs);
    } finally {
      connections.release(connection, { reusable });
    }
  };

  return {
    deliver: async (delivery) => {
      if (closed) throw new Error('the webhook client is closed; deliver before closing it');
      const result = attempt(delivery);
      underWay.add(result);
      try {
        return await result;
      } finally {
        underWay.delete(result);
      }
    },
    close: async () => {
      closed = true;
      await Promise.allSettled(underWay);
      endpoints.clear();
    },
  };
}

/** Compressed answers are not asked for, and never unpacked. */
const FIXED_HEADERS = {
  'content-type': 'application/json',
  'user-agent': 'virtual-card-issuing-api',
  'accept-encoding': 'identity',
};

/** The receiver closed a kept connection as the event was on its way: it has not been answered, and is sent again. */
function wasStale(answer: Exchange, connection: Connection): boolean {
  return (
    answer.status === null &&
    connection.used &&
    !answer.anyByte &&
    exchangeFailure(answer.error).code === 'connection_closed'
  );
}
