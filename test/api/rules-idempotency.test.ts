import assert from 'node:assert/strict';
import { fingerprintRequest } from '../../api/http/keyed.ts';
import type { Declaration } from '../../api/http/route.ts';
import { DECLARATIONS } from '../../api/routes.ts';
import type { Mode } from '../../domain/mode.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { claimIdempotencyKey } from '../../requests/claim.ts';
import { sealRequest } from '../../requests/response.ts';
import { unrestrictedPartner } from '../support/api/accounts.ts';
import { expectError, expectReplay } from '../support/api/answers.ts';
import { exampleOf, modesOf, nameOf, parametersOf, pathTo } from '../support/api/declared-operations.ts';
import { changeStatus } from '../support/card-status.ts';
import { createCard } from '../support/cards.ts';
import { setCardStatus } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Answer, CallOptions, TestPartner, TestStack } from '../support/stack.ts';

const AT_ONCE = 10;
/** Every account uses this one, so each test sees that a key stands for one request of one account. */
const KEY = 'order 4711';
const CASES = DECLARATIONS.flatMap((declaration) =>
  // The deposit that it resolves comes from a worker: test/deposits/test-deposits.test.ts.
  declaration.idempotencyKey && declaration.path !== '/test/deposits/:depositId/resolve'
    ? modesOf(declaration).map((mode) => ({ declaration, mode }))
    : [],
);

for (const { declaration, mode } of CASES) {
  describe(`an Idempotency-Key of ${nameOf(declaration)} in ${mode} mode`, () => {
    const { method, path, examples, bodyIsOptional } = declaration;
    let stack: TestStack;
    let partner: TestPartner;
    let ids: Record<string, string>;
    before(async () => {
      stack = await sharedStack(mode === 'live' && path !== '/funding/deposit-address' ? 'full' : 'api');
    });
    beforeEach(async () => {
      partner = await unrestrictedPartner(stack);
      ids = await makeSubject(partner, declaration, mode);
    });

    const send = (changes: CallOptions = {}, to = pathTo(declaration, ids), by = partner): Promise<Answer> =>
      by.call(method.toUpperCase(), to, {
        ...{ ...exampleOf(declaration), mode, idempotencyKey: KEY },
        ...changes,
      });
    const succeed = async (by = partner, of = ids): Promise<Answer> => {
      const answer = await send({}, pathTo(declaration, of), by);
      assert.ok(answer.status < 300, answer.text);
      assert.equal(answer.headers.get('idempotent-replayed'), null);
      assert.match(answer.headers.get('operation-id') ?? '', /^op_/);
      return answer;
    };
    const expectSame = (replayed: Answer, first: Answer) => {
      expectReplay(replayed, first);
      assert.equal(replayed.headers.get('operation-id'), first.headers.get('operation-id'));
    };

    it('gets the same response byte for byte, whatever has happened since, and nothing happens again', async () => {
      const first = await succeed();
      await setCardStatus(stack, partner.id, 'blocked');
      const after = await footprint(stack, partner);
      expectSame(await send(), first);
      if (examples.body !== undefined) {
        const reordered = Object.fromEntries(Object.entries(examples.body).reverse());
        expectSame(await send({ body: JSON.stringify(reordered, null, 1) }), first);
      }
      if (bodyIsOptional && examples.body === undefined)
        for (const body of [{}, '']) expectSame(await send({ body }), first);
      assert.deepEqual(await footprint(stack, partner), after);
    });

    it('gets 422 for another body, resource or endpoint, and nothing changes', async () => {
      const other = await makeSubject(partner, declaration, mode);
      const first = await succeed();
      const after = await footprint(stack, partner);
      if (examples.body !== undefined && Object.keys(examples.body).length > 0)
        expectConflict(await send({ body: changed(examples.body) }), first);
      if (parametersOf(declaration).length > 0)
        expectError(await send({}, pathTo(declaration, other)), 'idempotency_conflict');
      const elsewhere = path === '/cards' ? `/cards/${first.json.id}/topups` : '/cards';
      expectError(
        await partner.call('POST', elsewhere, {
          ...{ mode, idempotencyKey: KEY },
          body: { amount: 1_000, ...(elsewhere === '/cards' && { external_ref: 'another' }) },
        }),
        'idempotency_conflict',
      );
      expectSame(await send(), first);
      assert.deepEqual(await footprint(stack, partner), after);
    });

    it(`does once what ${AT_ONCE} requests ask for at once`, async () => {
      const twin = await unrestrictedPartner(stack);
      await succeed(twin, await makeSubject(twin, declaration, mode));
      const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => send()));
      const told = answers.filter(({ status }) => status !== 409);
      for (const answer of answers) {
        if (mode === 'live' && answer.status === 409) expectError(answer, 'idempotency_in_flight');
        else assert.equal(answer.text, told[0]?.text);
      }
      assert.ok((told[0]?.status ?? 500) < 300, told[0]?.text);
      assert.equal(told.filter(({ headers }) => headers.get('idempotent-replayed') === null).length, 1);
      assert.deepEqual(await footprint(stack, partner), await footprint(stack, twin));
      assert.equal((await send()).text, told[0]?.text);
    });

    it('is free after requests that were refused before they began', async () => {
      const post = (to: string, more: CallOptions = {}) => send(more, to);
      const to = pathTo(declaration, ids);
      expectError(await post(`${to}?x=1`), 'validation_failed', ['x']);
      expectError(await post(to, { body: { x: 1, ...examples.body } }), 'validation_failed', ['x']);
      expectError(await post(to, { body: ' '.repeat(70_000) }), 'body_too_large');
      expectError(
        await post(to, { body: '{}', headers: { 'content-type': 'text/plain' } }),
        'unsupported_media_type',
      );
      expectError(await post(to, { headers: { authorization: 'Bearer x' } }), 'invalid_api_key');
      expectError(await post(`${to}x/y/z`), 'not_found');
      const isThere = (method: string) =>
        DECLARATIONS.some(
          ({ path, method: its }) => path === declaration.path && its === method.toLowerCase(),
        );
      const other = ['PUT', 'PATCH', 'DELETE'].find((method) => !isThere(method)) ?? '';
      expectError(await partner.call(other, to, { mode, idempotencyKey: KEY }), 'method_not_allowed');
      if (parametersOf(declaration).length > 0) {
        const unknown = await post(pathTo(declaration));
        assert.equal(unknown.status, 404, unknown.text);
      }
      if (declaration.mode !== undefined)
        assert.equal((await post(to, { mode: mode === 'test' ? 'live' : 'test' })).status, 403);
      await succeed();
    });

    if (declaration.errors?.includes('invalid_state') && path.includes(':cardId')) {
      it('gets the same 409 for the state that a card was in, even when it could be done by now', async () => {
        await setCardStatus(stack, partner.id, 'failed', { failureCode: 'operator_failed' });
        const refused = await send();
        expectError(refused, 'invalid_state');
        await setCardStatus(stack, partner.id, path.endsWith('/unfreeze') ? 'frozen' : 'active');
        const after = await footprint(stack, partner);
        expectSame(await send(), refused);
        assert.deepEqual(await footprint(stack, partner), after);
        assert.ok((await send({ idempotencyKey: 'another' })).status < 300);
      });
    }

    if (mode === 'live') {
      it('gets 409 while its request is running, and 422 for another one', async () => {
        await leaveRunning(stack, partner, declaration, pathTo(declaration, ids));
        expectError(await send(), 'idempotency_in_flight');
        if (examples.body !== undefined)
          expectError(await send({ body: changed(examples.body) }), 'idempotency_conflict');
      });
    }
  });
}

/** It says how to look at the operation that the key belongs to. */
function expectConflict(answer: Answer, first: Answer): void {
  expectError(answer, 'idempotency_conflict');
  const operation = first.headers.get('operation-id');
  assert.ok(answer.json.error.message.includes(`GET /v1/operations/${operation}`), answer.text);
}

/** What an operation's path names, in a state in which it can be done. */
async function makeSubject(
  partner: TestPartner,
  declaration: Declaration,
  mode: Mode,
): Promise<Record<string, string>> {
  const [parameter] = parametersOf(declaration);
  if (parameter === undefined) return {};
  const card = await createCard(partner, { amount: 10_000 }, { mode });
  assert.equal(card.status, 201, card.text);
  const cardId = card.json.id;
  if (declaration.path.endsWith('/unfreeze'))
    assert.equal((await changeStatus(partner, cardId, 'freeze', { mode })).status, 200);
  if (parameter === 'cardId') return { cardId };
  const made = await partner.call('POST', `/test/cards/${cardId}/authorizations`, {
    body: { amount: 1_250 },
  });
  assert.equal(made.status, 201, made.text);
  return { authorizationId: made.json.id };
}

/** A body of the same form whose first number, or else first text, is another. */
function changed(body: object): object {
  const [name, value] =
    Object.entries(body).find(([, one]) => typeof one === 'number') ?? Object.entries(body)[0] ?? [];
  return { ...body, [name ?? '']: typeof value === 'number' ? value - 1 : `${value} too` };
}

/** The claim of a request that another process is running. */
async function leaveRunning(
  { orm, operator: { ring } }: TestStack,
  { id: partnerId }: TestPartner,
  { method, body, examples }: Declaration,
  path: string,
): Promise<void> {
  const claimId = newId('claim');
  const parsed = body?.parse(examples.body ?? {});
  await claimIdempotencyKey(
    { orm, ring },
    {
      ...{ claimId, partnerId, mode: 'live', key: KEY, operation: 'create_card', cardId: null },
      ...{ leaseMs: 3_600_000, resourceId: newId('card'), requestId: newId('req') },
      fingerprint: fingerprintRequest(method, `/v1${path}`, parsed),
      sealedRequest: sealRequest(ring, claimId, parsed ?? null),
      apiKeyId: null,
      clientAddress: null,
    },
  );
}

/** All that an account's operations have done, in no order: the money they moved, what they made, and what was told of it. */
async function footprint(stack: TestStack, { id }: TestPartner): Promise<string[]> {
  const rows = await asOwner<{ line: string }>(
    stack,
    `SELECT concat_ws(' ', 'transfer', code, phase, amount) AS line FROM ledger.transfer WHERE partner_id = $1
     UNION ALL SELECT concat_ws(' ', 'event', type) FROM event WHERE partner_id = $1
     UNION ALL SELECT concat_ws(' ', 'claim', operation, response_status) FROM idempotency_claim WHERE partner_id = $1
     UNION ALL SELECT concat_ws(' ', 'card', status) FROM card WHERE partner_id = $1
     UNION ALL SELECT concat_ws(' ', direction, status, amount_cents) FROM card_transfer WHERE partner_id = $1
     UNION ALL SELECT concat_ws(' ', 'transaction', type, amount_cents) FROM card_transaction WHERE partner_id = $1
     UNION ALL SELECT concat_ws(' ', 'authorization', status, held_cents) FROM card_authorization WHERE partner_id = $1
     UNION ALL SELECT concat_ws(' ', 'deposit', amount_cents) FROM deposit WHERE partner_id = $1
     UNION ALL SELECT concat_ws(' ', 'clock', offset_seconds) FROM test_clock_advance WHERE partner_id = $1
     ORDER BY line`,
    [id],
  );
  return rows.map(({ line }) => line);
}
