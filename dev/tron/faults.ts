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

export interface FaultRule {
  fault: Fault;
  /**
   * Part of the path, for instance `gettransactioninfobyblocknum` or `/walletsolidity/`; by default every
   * call.
   */
  path?: string;
  /** How many calls it affects before it ends; by default all. */
  times?: number;
  /** It affects every n-th call: 3 spares two of three. By default every call. */
  every?: number;
}

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

/** The faults of one node. */
export class Faults {
  readonly #rules = new Set<{ rule: FaultRule; seen: number; hit: number }>();

  /** @returns a function that removes it */
  add(rule: FaultRule): () => void {
    const entry = { rule, seen: 0, hit: 0 };
    this.#rules.add(entry);
    return () => this.#rules.delete(entry);
  }

  clear(): void {
    this.#rules.clear();
  }

  /** The fault of this call; if there are several, the one that was added first. */
  next(path: string): Fault | undefined {
    for (const entry of this.#rules) {
      const { fault, path: part = '', times = Number.POSITIVE_INFINITY, every = 1 } = entry.rule;
      if (!path.includes(part) || entry.hit >= times) continue;
      entry.seen++;
      if (entry.seen % every !== 0) continue;
      entry.hit++;
      return fault;
    }
    return undefined;
  }
}

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
