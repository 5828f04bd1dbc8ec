import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { Agent, request as send } from 'undici';
import { listenOnLoopback } from '../sockets.ts';

/** What can become of a request on its way to a card network and back. Those `after acting` reach the network. */
export const FAULTS = [
  'lost before acting',
  'lost after acting',
  '500 before acting',
  '500 after acting',
  '503 without JSON',
  'half an answer after acting',
  'another shape after acting',
  '401',
  '429',
] as const;
export type Fault = (typeof FAULTS)[number] | 'no answer after acting';

export interface UnrulyProxy {
  url: string;
  /** @param what the n-th request that acts from now on, or the n-th that reads; 1 is the next */
  breakNext(fault: Fault, what: { acting: number } | { reading: number }): void;
  breakAll(fault: Fault): void;
  /** How many requests were broken since. */
  mend(): number;
  /** How many requests that act have arrived. */
  acted(): number;
  close(): Promise<void>;
}

const RETRY_AFTER_SECONDS = 7;
export const RETRY_AFTER_MS = RETRY_AFTER_SECONDS * 1_000;

export async function startUnrulyProxy(target: string): Promise<UnrulyProxy> {
  const agent = new Agent();
  const rules: { fault: Fault; isActing: boolean | null; left: number }[] = [];
  let broken = 0;
  let acted = 0;

  function faultOf(isActing: boolean): Fault | undefined {
    for (const rule of rules) {
      if (rule.isActing === null) return rule.fault;
      if (rule.isActing === isActing && --rule.left === 0) return rule.fault;
    }
    return undefined;
  }

  const server = await listenOnLoopback((request, response) => {
    // The network was stopped, or the client is gone.
    serve(request, response).catch(() => response.destroy());
  });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isActing = request.method !== 'GET';
    if (isActing) acted += 1;
    const fault = faultOf(isActing);
    if (fault !== undefined) broken += 1;
    const body = await buffer(request);
    const answer = async () => {
      const {
        connection: _,
        host: __,
        'transfer-encoding': ___,
        'content-length': ____,
        ...headers
      } = request.headers;
      const passed = await send(target + request.url, {
        method: request.method ?? 'GET',
        headers,
        body: body.length === 0 ? null : body,
        dispatcher: agent,
      });
      return { status: passed.statusCode, text: await passed.body.text() };
    };
    const respond = (status: number, text: string, headers: Record<string, string> = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
    switch (fault) {
      case undefined: {
        const { status, text } = await answer();
        respond(status, text);
        return;
      }
      case 'lost before acting':
        request.socket.destroy();
        return;
      case 'lost after acting':
        await answer();
        request.socket.destroy();
        return;
      case '500 after acting':
        await answer();
        respond(500, '{}');
        return;
      case '500 before acting':
        respond(500, '{}');
        return;
      case '503 without JSON':
        respond(503, '<html>busy</html>');
        return;
      case 'half an answer after acting': {
        const { status, text } = await answer();
        respond(status, text.slice(0, text.length / 2));
        return;
      }
      case 'another shape after acting': {
        const { status, text } = await answer();
        respond(status, JSON.stringify({ answer: JSON.parse(text) }));
        return;
      }
      case '401':
        respond(401, '{}');
        return;
      case '429':
        respond(429, '{}', { 'retry-after': String(RETRY_AFTER_SECONDS) });
        return;
      case 'no answer after acting':
        await answer();
        return;
    }
  }

  return {
    url: server.url,
    breakNext: (fault, what) =>
      'acting' in what
        ? void rules.push({ fault, isActing: true, left: what.acting })
        : void rules.push({ fault, isActing: false, left: what.reading }),
    breakAll: (fault) => void rules.push({ fault, isActing: null, left: 0 }),
    mend: () => {
      rules.length = 0;
      const count = broken;
      broken = 0;
      return count;
    },
    acted: () => acted,
    close: async () => {
      await server.close();
      await agent.close();
    },
  };
}
