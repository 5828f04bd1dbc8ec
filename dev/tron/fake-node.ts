import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { FaultRules } from '../fault-rules.ts';
import { type Api, answerCall } from './api.ts';
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
  const servers: Server[] = [];
  const node: FakeNode = {
    url: '',
    view: new NodeView(chain, name),
    faults: new FaultRules<Fault>(),
    calls: new Map(),
    lastHeaders: {},
    mostAtOnce: 0,
    latencyMs: 0,
    stop: async () => {
      await Promise.all(servers.map(close));
    },
  };

  const serve = async (apis: readonly Api[], request: IncomingMessage, response: ServerResponse) => {
    const body = await readBody(request);
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
    const server = createServer((request, response) => {
      atOnce++;
      node.mostAtOnce = Math.max(node.mostAtOnce, atOnce);
      response.on('close', () => {
        atOnce--;
      });
      serve(apis, request, response).catch((error) => {
        // The caller is gone, or this node has a bug.
        if (response.headersSent) response.destroy();
        else send(response, 500, JSON.stringify({ Error: String(error) }));
      });
    });
    servers.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(onPort, '127.0.0.1', resolve);
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  node.url = isBare
    ? `${await listen(['wallet'], port)}|${await listen(['walletsolidity'], 0)}`
    : await listen(['wallet', 'walletsolidity'], port);
  return node;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function send(response: ServerResponse, status: number, text: string): void {
  const body = Buffer.from(text);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    // Includes connections whose call hangs.
    server.closeAllConnections();
  });
}
