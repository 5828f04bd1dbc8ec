import type { ServerResponse } from 'node:http';

/** What issuers have done instead of answering. Those that say so have acted before. */
export type Fault =
  | 'lost before acting'
  | 'lost after acting'
  | 'internal error'
  | 'internal error after acting'
  | 'rate limited'
  | 'unauthorized'
  | 'hang'
  | 'not JSON'
  | 'other shape';

export const actsFirst = (fault: Fault): boolean =>
  ['lost after acting', 'internal error after acting', 'not JSON', 'other shape'].includes(fault);

const problem = (type: string, status: number) => ({ type, title: type, detail: null, status });

/** @param answer what a working server would have answered, if the fault acts first */
export function answerWithFault(fault: Fault, response: ServerResponse, answer: string): void {
  const send = (status: number, body: string, headers: Record<string, string> = {}) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  switch (fault) {
    case 'lost before acting':
    case 'lost after acting':
      response.socket?.destroy();
      return;
    case 'hang':
      return;
    case 'internal error':
    case 'internal error after acting':
      send(500, JSON.stringify(problem('internal_server_error', 500)));
      return;
    case 'unauthorized':
      send(401, JSON.stringify({ ...problem('invalid_api_key_error', 401), reason: 'deleted_credential' }));
      return;
    case 'rate limited':
      send(429, JSON.stringify({ ...problem('rate_limited_error', 429), retry_after: 1 }), {
        'retry-after': '1',
      });
      return;
    case 'not JSON':
      send(200, answer.slice(0, answer.length / 2));
      return;
    case 'other shape':
      send(200, JSON.stringify({ object: JSON.parse(answer) }));
      return;
  }
}
