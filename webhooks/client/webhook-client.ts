import { LRUCache } from 'lru-cache';
import type { Client, Dispatcher } from 'undici';
import {
  createHostResolver,
  type NetworkAccess,
  type OpenSocket,
  openSocket,
  type ResolveHost,
} from './checked-socket.ts';
import {
  DeliveryFailure,
  type DeliveryResult,
  type Exchange,
  exchangeFailure,
  failed,
  toDeliveryResult,
} from './delivery-result.ts';
import {
  createEndpointConnections,
  type EndpointConnection,
  type EndpointConnections,
} from './endpoint-connections.ts';
import { parseWebhookUrl } from './webhook-url.ts';

const MAX_RESPONSE_BYTES = 16_384;
const KEPT_RESPONSE_BYTES = 1_024;
/** How long a receiver may take for the rest of its response after the status line. */
const RESPONSE_GRACE_MS = 1_000;

export interface WebhookClientOptions {
  /** From the DNS look-up to the status line. */
  timeoutMs: number;
  /** Also allows http to loopback addresses (WEBHOOK_ALLOW_LOOPBACK_HTTP in docs/operating.md). */
  allowLoopbackHttp: boolean;
  /** Connections to one endpoint. Further attempts wait, and their time starts when they get a connection. */
  connectionsPerEndpoint?: number;
  /** Endpoints whose connections are kept. The least recently used is dropped first. */
  endpointsKept?: number;
  /** Certificates to trust instead of the public ones, PEM. */
  ca?: string;
  resolve?: ResolveHost;
  /**
   * Opens a connection to a checked address. Only tests set it, to redirect the client to their own receiver.
   */
  openSocket?: OpenSocket;
}

interface WebhookRequest {
  endpointId: string;
  url: string;
  /** Sent as it is, in UTF-8. */
  body: string;
  /** Called when the attempt's time starts: returns the headers, from `signEvent`. */
  sign(): Readonly<Record<string, string>>;
}

export interface WebhookClient {
  /**
   * Makes one attempt. Whatever the receiver, its name server or its network does is a result.
   * @throws only for problems on our side: this machine is out of sockets, a header is invalid, the client is
   * closed
   */
  deliver(request: WebhookRequest): Promise<DeliveryResult>;
  /** Waits for the attempts in progress, then closes all connections. */
  close(): Promise<void>;
}

/**
 * Posts events to addresses that partners choose (docs/decisions/outbound-safety.md). Environment variables
 * have no effect: neither a proxy nor NODE_TLS_REJECT_UNAUTHORIZED.
 */
export function createWebhookClient(options: WebhookClientOptions): WebhookClient {
  const network: NetworkAccess = {
    resolve: options.resolve ?? createHostResolver(),
    openSocket: options.openSocket ?? openSocket,
    ca: options.ca,
  };
  const endpoints = new LRUCache<string, EndpointConnections>({
    max: options.endpointsKept ?? 500,
    dispose: (connections) => connections.retire(),
  });
  const inProgress = new Set<Promise<DeliveryResult>>();
  let closed = false;

  const attempt = async ({ endpointId, url, body, sign }: WebhookRequest): Promise<DeliveryResult> => {
    const target = parseWebhookUrl(url, options);
    if ('problem' in target) return failed(target.problem, 0);
    // Partners may share a host or a URL, and one that hangs must not use up the others' connections.
    const endpoint = `${endpointId} ${target.href}`;
    let connections = endpoints.get(endpoint);
    if (connections === undefined) {
      connections = createEndpointConnections(target, network, options.connectionsPerEndpoint ?? 32);
      endpoints.set(endpoint, connections);
    }
    let connection = await connections.acquire();
    let reusable = false;
    try {
      const startedAtMs = performance.now();
      const headers = { ...FIXED_HEADERS, ...sign() };
      const post = () => {
        connection.deadlineAtMs = startedAtMs + options.timeoutMs;
        const request = { method: 'POST', path: target.path, headers, body };
        return exchange(connection.client, request, connection.deadlineAtMs);
      };
      let answer = await post();
      if (wasStale(answer, connection)) {
        connection = connections.replace(connection);
        answer = await post();
      }
      reusable = answer.status !== null && answer.ended;
      return toDeliveryResult(answer, startedAtMs);
    } finally {
      connections.release(connection, { reusable });
    }
  };

  return {
    deliver: async (request) => {
      if (closed) throw new Error('the webhook client is closed; deliver before closing it');
      const result = attempt(request);
      inProgress.add(result);
      try {
        return await result;
      } finally {
        inProgress.delete(result);
      }
    },
    close: async () => {
      closed = true;
      await Promise.allSettled(inProgress);
      endpoints.clear();
    },
  };
}

/** We don't ask for compressed responses, and never decompress one. */
const FIXED_HEADERS = {
  'content-type': 'application/json',
  'user-agent': 'virtual-card-issuing-api',
  'accept-encoding': 'identity',
};

/**
 * Whether the receiver closed a reused connection just as the event was sent. There was no response, so we
 * send it again.
 */
function wasStale(answer: Exchange, connection: EndpointConnection): boolean {
  return (
    answer.status === null &&
    connection.used &&
    !answer.anyByte &&
    exchangeFailure(answer.error).code === 'connection_closed'
  );
}

/**
 * Makes one request over one connection, until the response ends or exceeds its size or time limit. Nothing
 * after the status line changes the outcome. If the response did not end, the caller has to destroy the
 * connection.
 * @param deadlineAtMs for the status line, on the clock of `performance.now()`
 */
function exchange(
  client: Client,
  request: Dispatcher.DispatchOptions,
  deadlineAtMs: number,
): Promise<Exchange> {
  return new Promise((resolve) => {
    let status: number | null = null;
    let answeredAtMs = 0;
    let anyByte = false;
    let readBytes = 0;
    let answerStart: Buffer = Buffer.alloc(0);
    let timer = setTimeout(
      () => settle(new DeliveryFailure('timeout')),
      Math.max(0, deadlineAtMs - performance.now()),
    );
    const settle = (error: unknown) => {
      clearTimeout(timer);
      if (status === null) resolve({ status, error, anyByte });
      else resolve({ status, answeredAtMs, answerStart, ended: error === null });
    };
    client.dispatch(request, {
      onRequestStart() {},
      onResponseStarted() {
        anyByte = true;
      },
      onResponseStart(_controller, statusCode) {
        if (statusCode < 200) return;
        status = statusCode;
        answeredAtMs = performance.now();
        clearTimeout(timer);
        timer = setTimeout(settle, RESPONSE_GRACE_MS, 'took too long');
      },
      onResponseData(_controller, chunk) {
        readBytes += chunk.length;
        const missing = KEPT_RESPONSE_BYTES - answerStart.length;
        if (missing > 0) answerStart = Buffer.concat([answerStart, chunk.subarray(0, missing)]);
        if (readBytes > MAX_RESPONSE_BYTES) settle('too long');
      },
      onResponseEnd() {
        settle(null);
      },
      onResponseError(_controller, error) {
        settle(error);
      },
    });
  });
}
