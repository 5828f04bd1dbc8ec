import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { startFakeServer } from '../fake-server.ts';
import { FaultRules } from '../fault-rules.ts';
import type { Chain } from './chain.ts';
import { answerWithFault, type Fault } from './faults.ts';
import { NodeView } from './node-view.ts';

export interface FakeNodeOptions {
  /** By default `node`. */
  name?: string;
  /**
   * A bare node serves the API of solid blocks on a port of its own; by default both are under one address.
   */
  isBare?: boolean;
  /** By default any free one. */
  port?: number;
  /** Handles requests that are not part of TRON's API. @returns whether it has */
  alsoServe?: (request: IncomingMessage, body: string, response: ServerResponse) => boolean;
}

export interface FakeNode {
  /** As TRON_NODE_URLS takes it: `http://…`, or `http://…|http://…` for a bare node. */
  url: string;
  /** What it shows of the chain, which tests can change. */
  view: NodeView;
  faults: FaultRules<Fault>;
  /** The number of calls of each path. */
  calls: Map<string, number>;
  /** The headers of the last call. */
  lastHeaders: IncomingMessage['headers'];
  /** The largest number of calls in progress at once. */
  mostAtOnce: number;
  /** The delay of each answer. */
  latencyMs: number;
  stop(): Promise<void>;
}

/** Starts a node on loopback that speaks the HTTP API of java-tron and TronGrid. */
export async function startFakeNode(chain: Chain, options: FakeNodeOptions = {}): Promise<FakeNode> {
  const { name = 'node', isBare = false, port = 0, alsoServe } = options;
  let atOnce = 0;
  const servers: Awaited<ReturnType<typeof startFakeServer>>[] = [];
  const node: FakeNode = {
    url: '',
    view: new NodeView(chain, name),
    faults: new FaultRules<Fault>(),
    calls: new Map(),
    lastHeaders: {},
    mostAtOnce: 0,
    latencyMs: 0,
    stop: async () => {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };

  const serve = async (
    apis: readonly Api[],
    request: IncomingMessage,
    body: string,
    response: ServerResponse,
  ) => {
    atOnce++;
    node.mostAtOnce = Math.max(node.mostAtOnce, atOnce);
    response.on('close', () => {
      atOnce--;
    });
    const url = new URL(request.url ?? '/', 'http://node');
    node.calls.set(url.pathname, (node.calls.get(url.pathname) ?? 0) + 1);
    node.lastHeaders = request.headers;
    if (node.latencyMs > 0) await delay(node.latencyMs);
    const fault = node.faults.next(url.pathname);
    const answer = () => answerCall(node.view, apis, { method: request.method, url, body });
    if (fault !== undefined) {
      answerWithFault(fault, request, response, () => answer() ?? '');
    } else if (alsoServe?.(request, body, response) !== true) {
      const text = answer();
      if (text === undefined) send(response, 404, '{"Error":"not found"}');
      else send(response, 200, text);
    }
  };
  const listen = async (apis: readonly Api[], onPort: number): Promise<string> => {
    const server = await startFakeServer(onPort, (request, body, response) =>
      serve(apis, request, body, response),
    );
    servers.push(server);
    return server.url;
  };

  node.url = isBare
    ? `${await listen(['wallet'], port)}|${await listen(['walletsolidity'], 0)}`
    : await listen(['wallet', 'walletsolidity'], port);
  return node;
}

/** `wallet` shows blocks up to the head, `walletsolidity` up to the newest solid one. */
type Api = 'wallet' | 'walletsolidity';

const METHODS: Record<string, (view: NodeView, isSolid: boolean, number: number) => string> = {
  getnowblock: (view, isSolid) => view.blockJson(view.newestNumber(isSolid), isSolid) ?? '{}',
  getblockbynum: (view, isSolid, number) => view.blockJson(number, isSolid) ?? '{}',
  gettransactioninfobyblocknum: (view, isSolid, number) =>
    number > 0 ? view.infosJson(number, isSolid) : '{}',
};

/**
 * @returns the body of a 200; undefined if there is no such path. As with java-tron, an error is a 200 too.
 */
export function answerCall(
  view: NodeView,
  apis: readonly Api[],
  { method, url, body }: { method: string | undefined; url: URL; body: string },
): string | undefined {
  const [, api, name = ''] = url.pathname.split('/');
  const answer = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
  if (answer === undefined || !apis.some((served) => served === api)) return undefined;
  try {
    const { num = 0 } = method === 'GET' ? Object.fromEntries(url.searchParams) : JSON.parse(body || '{}');
    // As in protobuf, a missing number is 0.
    const number = Number(num);
    if (!Number.isSafeInteger(number)) throw new RangeError(`Couldn't parse integer: ${num}`);
    return answer(view, api === 'walletsolidity', number);
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof RangeError)) throw error;
    return JSON.stringify({
      Error: `class org.tron.core.services.http.JsonFormat$ParseException : ${error.message}`,
    });
  }
}

function send(response: ServerResponse, status: number, text: string): void {
  const body = Buffer.from(text);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
}
