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

const RETRY_AFTER_SECONDS = 7;
export const RETRY_AFTER_MS = RETRY_AFTER_SECONDS * 1_000;

export async function startUnrulyProxy(target: string) {
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

  async function pass({ method = 'GET', url, headers: sent }: IncomingMessage, body: Buffer) {
    const { connection: _, host: __, 'transfer-encoding': ___, 'content-length': ____, ...headers } = sent;
    const passed = await send(target + url, {
      method,
      headers,
      body: body.length === 0 ? null : body,
      dispatcher: agent,
    });
    return { status: passed.statusCode, text: await passed.body.text() };
  }

  async function serve(request: IncomingMessage, response: ServerResponse) {
    const isActing = request.method !== 'GET';
    if (isActing) acted += 1;
    const fault = faultOf(isActing);
    if (fault !== undefined) broken += 1;
    const body = await buffer(request);
    const respond = (status: number, text: string, headers: Record<string, string> = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
    const isPassedOn = fault === undefined || fault.endsWith('after acting');
    const { status, text } = isPassedOn ? await pass(request, body) : { status: 0, text: '' };
    switch (fault) {
      case undefined:
        return respond(status, text);
      case 'lost before acting':
      case 'lost after acting':
        return request.socket.destroy();
      case '500 after acting':
      case '500 before acting':
        return respond(500, '{}');
      case '503 without JSON':
        return respond(503, '<html>busy</html>');
      case 'half an answer after acting':
        return respond(status, text.slice(0, text.length / 2));
      case 'another shape after acting':
        return respond(status, JSON.stringify({ answer: JSON.parse(text) }));
      case '401':
        return respond(401, '{}');
      case '429':
        return respond(429, '{}', { 'retry-after': String(RETRY_AFTER_SECONDS) });
      case 'no answer after acting':
        return undefined;
    }
  }

  return {
    url: server.url,
    /** @param what the n-th request that acts from now on, or the n-th that reads; 1 is the next */
    breakNext: (fault: Fault, what: { acting: number } | { reading: number }) =>
      'acting' in what
        ? void rules.push({ fault, isActing: true, left: what.acting })
        : void rules.push({ fault, isActing: false, left: what.reading }),
    breakAll: (fault: Fault) => void rules.push({ fault, isActing: null, left: 0 }),
    /** @returns how many requests were broken since the last time */
    mend: () => {
      rules.length = 0;
      const count = broken;
      broken = 0;
      return count;
    },
    /** How many requests that act have arrived. */
    acted: () => acted,
    close: async () => {
      await server.close();
      await agent.close();
    },
  };
}

export type UnrulyProxy = Awaited<ReturnType<typeof startUnrulyProxy>>;
