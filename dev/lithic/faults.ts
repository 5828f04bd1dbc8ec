import type { ServerResponse } from 'node:http';

/**
 * What Lithic may do instead of answering. `before` and `after` say whether it had acted by then. A `500` is
 * kept under the request's key, as Lithic does.
 */
export type Fault =
  | 'lost before'
  | 'lost after'
  | '500 before'
  | '500 after'
  | 'rate limited'
  | 'unauthorized'
  | 'refused'
  | 'malformed'
  | 'other shape';

export interface Response {
  status: number;
  body: object;
}

const PROBLEM = { message: 'a message that may repeat the request', debugging_request_id: '94d5e915-xxxx' };

/** What the fault makes of a call. @param act what a working Lithic does and answers */
export function respondWith(fault: Fault | undefined, act: () => Response): Response {
  switch (fault) {
    case 'lost before':
      return { status: 0, body: {} };
    case '500 before':
      return { status: 500, body: PROBLEM };
    case '500 after':
      act();
      return { status: 500, body: PROBLEM };
    case 'rate limited':
      return { status: 429, body: PROBLEM };
    case 'unauthorized':
      return { status: 401, body: PROBLEM };
    case 'refused':
      return { status: 400, body: PROBLEM };
    default:
      return act();
  }
}

/** Sends the answer, as far as the fault lets it through. */
export function send(response: ServerResponse, fault: Fault | undefined, { status, body }: Response): void {
  if (fault === 'lost before' || fault === 'lost after') {
    response.destroy();
    return;
  }
  const text = fault === 'other shape' ? JSON.stringify({ card: body }) : JSON.stringify(body);
  response
    .writeHead(status, { 'content-type': 'application/json', ...(status === 429 && { 'retry-after': '1' }) })
    .end(fault === 'malformed' ? text.slice(0, text.length / 2) : text);
}
