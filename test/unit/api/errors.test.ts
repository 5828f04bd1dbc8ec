import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { pino } from 'pino';
import { Histogram, Registry } from 'prom-client';
import { respondWithErrors } from '../../../api/http/errors.ts';
import { logRequest, type RequestState } from '../../../api/http/log-request.ts';
import { ApiError } from '../../../domain/api-error.ts';
import { PoolBusy } from '../../../platform/db/pool.ts';

describe('the log of a request that gets an error', () => {
  const lines: string[] = [];
  let thrown: Error;
  let server: Server;
  before(async () => {
    const logger = pino({}, { write: (line: string) => lines.push(line) });
    const labelNames = ['method', 'route', 'status'] as const;
    const durations = new Histogram({
      name: 'd',
      help: 'of requests',
      labelNames,
      registers: [new Registry()],
    });
    const app = new Koa<RequestState>();
    app
      .use(logRequest(logger, durations, () => '192.0.2.1'))
      .use(respondWithErrors(logger))
      .use(() => {
        throw thrown;
      });
    server = createServer(app.callback()).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => {
    server.close();
    server.closeAllConnections();
  });

  /** The lines of a request that fails like this, without what every line has. */
  async function logOf(error: Error) {
    thrown = error;
    lines.length = 0;
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    await response.text();
    return lines.map((line) => {
      const { level, msg, status, code, reason, error: described } = JSON.parse(line);
      return { level, msg, status, code, reason, error: described?.name };
    });
  }

  const none = { status: undefined, code: undefined, reason: undefined, error: undefined };
  const failure = (error: string) => ({ ...none, level: 50, msg: 'a request failed', error });
  const request = (status: number, code: string, reason?: string) => ({
    ...none,
    level: 30,
    msg: 'request',
    status,
    code,
    reason,
  });

  it('has one line of a refusal, and its reason if it is a 503', async () => {
    const busy = new ApiError('unavailable', { message: 'Too much is waiting.' });
    assert.deepEqual(await logOf(busy), [request(503, 'unavailable', 'Too much is waiting.')]);
    assert.deepEqual(await logOf(new ApiError('card_not_found')), [request(404, 'card_not_found')]);
  });

  it('has the error of an outage, and of a fault of ours', async () => {
    for (const [error, name, status, code] of [
      [new PoolBusy('no connection'), 'PoolBusy', 503, 'unavailable'],
      [new TypeError('oops'), 'TypeError', 500, 'internal_error'],
      [new ApiError('internal_error'), 'ApiError', 500, 'internal_error'],
    ] as const)
      assert.deepEqual(await logOf(error), [failure(name), request(status, code)]);
  });
});
