import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

/** What real nodes have done instead of answering. */
export type Fault =
  | 'empty list'
  | 'empty object'
  | 'overloaded'
  | 'lite'
  | 'unknown key'
  | 'forbidden'
  | 'rate limited'
  | 'internal error'
  | 'redirect'
  | 'hang'
  | 'trickle'
  | 'endless'
  | 'truncated'
  | 'disconnect';

const ANSWERS: Record<
  Exclude<Fault, 'hang' | 'trickle' | 'endless' | 'disconnect' | 'truncated'>,
  [status: number, body: string]
> = {
  'empty list': [200, '[]'],
  'empty object': [200, '{}'],
  overloaded: [200, '{"Error":"class java.lang.IllegalAccessException : lack of computing resources"}'],
  lite: [200, 'this API is closed because this node is a lite fullnode'],
  'unknown key': [401, '{"Error":"ApiKey not exists"}'],
  forbidden: [403, '{"Success":false,"Error":"Exceed the user daily usage (100000), please wait."}'],
  'rate limited': [429, '{"Error":"The key exceeds the frequency limit(15)"}'],
  redirect: [302, ''],
  'internal error': [500, '<html><head><title>Error 500 Server Error</title></head><body></body></html>'],
};

/** Answers with the fault. @param answer what a working node would have answered */
export function answerWithFault(
  fault: Fault,
  request: IncomingMessage,
  response: ServerResponse,
  answer: () => string,
): void {
  switch (fault) {
    case 'hang':
      return;
    case 'disconnect':
      request.socket.destroy();
      return;
    case 'trickle':
    case 'endless':
      response.writeHead(200, { 'content-type': 'application/json' });
      pipeline(Readable.from(fault === 'trickle' ? trickle() : flood()), response, () => {});
      return;
  }
  const text = fault === 'truncated' ? answer() : '';
  const [status, body] = fault === 'truncated' ? [200, text.slice(0, text.length / 2)] : ANSWERS[fault];
  response.writeHead(status, {
    'content-type': body.startsWith('<') ? 'text/html;charset=iso-8859-1' : 'application/json; charset=utf-8',
    ...(status === 429 && { 'retry-after': '1' }),
    ...(status === 302 && { location: '/elsewhere' }),
  });
  response.end(body);
}

/** A byte now and then, so that the connection is never idle. */
async function* trickle() {
  for (;;) {
    yield ' ';
    await delay(50);
  }
}

function* flood() {
  const megabyte = '[],'.repeat(350_000);
  yield '[';
  for (;;) yield megabyte;
}
