import assert from 'node:assert/strict';
import type { RouterContext } from '@koa/router';
import { z } from 'zod';
import { checkResponses } from '../../../api/http/check-responses.ts';
import type { RequestState } from '../../../api/http/log-request.ts';
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

  const check = async (status: number, body: unknown) => {
    const ctx = {} as RouterContext<RequestState>;
    const answer = () =>
      void Object.assign(ctx, { status, body: body === null ? null : JSON.stringify(body) });
    await checkResponses(declaration, answer)(ctx, async () => {});
  };
  const error = (code: ConstructorParameters<typeof ApiError>[0]) =>
    presentError(new ApiError(code), 'req_01m810261f56tm02pjpg6322pv');

  for (const [status, body] of [
    [200, { data: [{ id: 'a', amount: 1 }] }],
    [204, null],
    [404, error('card_not_found')],
    [503, error('unavailable')],
  ] as const)
    it(`passes if its ${status} is declared`, () => check(status, body));

  const extra = { data: [{ id: 'a', amount: 1, secret: 's' }] };
  for (const [what, status, body, problem] of [
    ['its status is not declared', 201, { data: [] }, 'the status is not declared'],
    ['a field is missing', 200, { data: [{ id: 'a' }] }, 'data.0.amount: '],
    ['a value is of another type', 200, { data: [{ id: 'a', amount: 1.5 }] }, 'data.0.amount: '],
    ['it has an extra field', 200, extra, 'data.0.secret: the field'],
    ['it has a body and none is declared', 204, {}, ': '],
    ['its error code is not declared', 409, error('invalid_state'), 'error.code: invalid_state'],
    ['its error code has another status', 409, error('card_not_found'), 'error.code: card_not_found'],
    ['its body is not an error', 404, { message: 'no' }, 'error: '],
  ] as const) {
    it(`becomes a 500 that names the route, status and field if ${what}`, async () => {
      const expected = `GET /things answered ${status}, which is not what it declares: ${problem}`;
      await assert.rejects(check(status, body), (thrown) => {
        assert.ok(thrown instanceof ApiError && thrown.code === 'internal_error');
        assert.equal(thrown.message.slice(0, expected.length), expected);
        return true;
      });
    });
  }
});
