import {
  simulatedNetworkCredentials,
  simulatedNetworkSecrets,
} from '../../../issuers/simulated/credentials.ts';
import { signBody } from '../../../issuers/simulated/signature.ts';
import type { Answer } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { Difference } from '../difference.ts';
import { count } from '../tally.ts';
import { MAX_TRIES, type Service, waitFor } from './running-service.ts';

const REQUEST_TIMEOUT_MS = 30_000;

interface Request {
  key: string;
  method: 'GET' | 'POST' | 'PATCH';
  path: string;
  body?: object;
  idempotencyKey?: string;
}

/** Sends the request until the answer is other than "later", as a partner has to. */
export function ask(service: Service, { key, method, path, body, idempotencyKey }: Request): Promise<Answer> {
  return untilTold(service, `/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

export function tellAsNetwork(service: Service, path: string, message: object): Promise<Answer> {
  const secret = simulatedNetworkSecrets(service.stack.operator.ring)[0];
  const body = JSON.stringify(message);
  const signature = signBody(body, simulatedNetworkCredentials(secret).callbackSecret);
  const headers = { 'x-network-signature': signature };
  return untilTold(service, path, { method: 'POST', headers, body });
}

function untilTold(service: Service, path: string, init: RequestInit): Promise<Answer> {
  return waitFor(service, () => sendUntilTold(service, path, init));
}

async function sendUntilTold(service: Service, path: string, init: RequestInit): Promise<Answer> {
  const what = `${init.method} ${path}`;
  let tries = 0;
  return until(`${what} is answered`, async () => {
    const answer = await send(`${service.origin}${path}`, init).catch((error: Error) => {
      if (!service.troubled) throw error;
      return error;
    });
    count(service.answers, answer instanceof Error ? 'none' : `${answer.status}`);
    if (!(answer instanceof Error) && !isLater(answer)) return answer;
    tries += 1;
    if (tries < MAX_TRIES) return null;
    const last = answer instanceof Error ? String(answer) : answer.text;
    throw new Difference(`${what} has no answer after ${tries} tries, the last was ${last}`);
  });
}

async function send(url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
}

function isLater({ status, json }: Answer): boolean {
  return status === 503 || json?.error?.code === 'idempotency_in_flight';
}
