import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import Koa from 'koa';
import { pino } from 'pino';
import { Histogram, Registry } from 'prom-client';
import { z } from 'zod';
import { checkResponses } from '../../../api/http/check-responses.ts';
import { respondWithErrors } from '../../../api/http/errors.ts';
import { logRequest, type RequestState } from '../../../api/http/log-request.ts';
import { declare } from '../../../api/http/route.ts';
import { ApiError } from '../../../domain/api-error.ts';
import { presentError } from '../../../requests/error-resource.ts';

describe('a response that is checked under test', () => {
  const declaration = declare({
    method: 'get',
    path: '/things',
    scope: 'cards:read',
    operationId: 'cards.things',
    summary: 'Things',
    description: 'Things.',
    query: z.strictObject({}),
    responses: {
      200: z.object({ data: z.array(z.object({ id: z.string(), amount: z.int() })) }),
      204: z.null(),
    },
    examples: {},
    errors: ['card_not_found'],
  });
  let server: Server;
  let answer: () => { status: number; body: unknown };

  before(async () => {
    const app = new Koa<RequestState>();
    const durations = new Histogram({
      ...{ name: 'durations', help: 'of requests', labelNames: ['method', 'route', 'status'] },
      registers: [new Registry()],
    });
    const router = new Router<RequestState>();
    router.get(
      '/things',
      checkResponses(declaration, (ctx) => {
        const { status, body } = answer();
        ctx.status = status;
        if (body !== null) ctx.body = JSON.stringify(body);
      }),
    );
    const logger = pino({ level: 'silent' });
    app
      .use(logRequest(logger, durations, () => '192.0.2.1'))
      .use(respondWithErrors(logger))
      .use(router.routes());
    server = createServer(app.callback()).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(() => {
    server.close();
  });

  async function ask(status: number, body: unknown) {
    answer = () => ({ status, body });
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/things`);
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text) };
  }

  const error = (code: ConstructorParameters<typeof ApiError>[0]) =>
    presentError(new ApiError(code), 'req_01m810261f56tm02pjpg6322pv');

  for (const [status, body] of [
    [200, { data: [{ id: 'a', amount: 1 }] }],
    [204, null],
    [404, error('card_not_found')],
    [503, error('unavailable')],
  ] as const) {
    it(`passes if its ${status} is declared`, async () => {
      assert.deepEqual(await ask(status, body), { status, body });
    });
  }

  for (const [what, status, body, problem] of [
    ['its status is not declared', 201, { data: [] }, 'the status is not declared'],
    ['a field is missing', 200, { data: [{ id: 'a' }] }, 'data.0.amount: '],
    ['a value is of another type', 200, { data: [{ id: 'a', amount: 1.5 }] }, 'data.0.amount: '],
    [
      'it has an extra field',
      200,
      { data: [{ id: 'a', amount: 1, secret: 's' }] },
      'data.0.secret: the field',
    ],
    ['it has a body and none is declared', 204, {}, ': '],
    ['its error code is not declared', 409, error('invalid_state'), 'error.code: invalid_state'],
    ['its error code has another status', 409, error('card_not_found'), 'error.code: card_not_found'],
    ['its body is not an error', 404, { message: 'no' }, 'error: '],
  ] as const) {
    it(`becomes a 500 that names the route, status and field if ${what}`, async () => {
      const answered = await ask(status, body);
      assert.equal(answered.status, 500);
      const expected = `GET /things answered ${status}, which is not what it declares: ${problem}`;
      assert.equal(answered.body.error.message.slice(0, expected.length), expected);
    });
  }
});
