import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Mode } from '../../domain/mode.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { expectError, expectReplay } from '../support/api/answers.ts';
import { authorizedCard } from '../support/authorizations.ts';
import { createCard } from '../support/cards.ts';
import { column } from '../support/column.ts';
import { seedDeposit } from '../support/deposits/seed-deposits.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../support/stack.ts';

const OPERATION_ID = /^op_[0-9a-z]{26}$/;

const idOf = (answer: Answer): string => {
  const id = answer.headers.get('operation-id') ?? '';
  assert.match(id, OPERATION_ID, answer.text);
  return id;
};

describe('an operation', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack, 1_000_000);
  });

  const post = (path: string, body: unknown, mode: Mode = 'test', idempotencyKey: string = randomUUID()) =>
    partner.call('POST', path, { mode, body, idempotencyKey });
  const show = async (id: string, mode: Mode = 'test', of = partner) => {
    const answer = await of.call('GET', `/operations/${id}`, { mode });
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  const list = async (query: string, mode: Mode = 'test') => {
    const answer = await partner.call('GET', `/operations?${query}`, { mode });
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };

  for (const mode of ['test', 'live'] as const) {
    describe(`in ${mode} mode`, () => {
      it('is named by every response to a request with a key, and says what became of it', async () => {
        const cardKey = randomUUID();
        const ask = () =>
          createCard(partner, { amount: 5_000, external_ref: 'r' }, { mode, idempotencyKey: cardKey });
        const created = await ask();
        assert.equal(created.status, 201, created.text);
        const replayed = await ask();
        expectReplay(replayed, created);
        assert.equal(idOf(replayed), idOf(created));
        const { id: cardId } = created.json;
        const elsewhere = await post(`/cards/${cardId}/topups`, { amount: 1 }, mode, cardKey);
        expectError(elsewhere, 'idempotency_conflict');
        assert.equal(idOf(elsewhere), idOf(created));

        const shown = await show(idOf(created), mode);
        const { created: at, completed_at, ...rest } = shown;
        assert.deepEqual(rest, {
          ...{ id: idOf(created), object: 'operation', type: 'create_card', status: 'completed' },
          idempotency_key: cardKey,
          resource: { type: 'card', id: cardId },
          response_status: 201,
          ...{ network: null, waits_for: null, mode },
        });
        assert.ok(
          Date.parse(at) <= Date.parse(completed_at) && Date.parse(completed_at) <= Date.now() + 1_000,
        );

        const card = { type: 'card', id: cardId };
        const steps: [path: string, body: unknown, type: string, resource: object | null][] = [
          [`/cards/${cardId}/topups`, { amount: 1_000 }, 'top_up_card', null],
          [`/cards/${cardId}/withdrawals`, { amount: 100 }, 'withdraw_from_card', null],
          [`/cards/${cardId}/freeze`, undefined, 'freeze_card', card],
          [`/cards/${cardId}/unfreeze`, undefined, 'unfreeze_card', card],
          [`/cards/${cardId}/block`, undefined, 'block_card', card],
        ];
        for (const [path, body, type, resource] of steps) {
          const answer = await post(path, body, mode);
          assert.ok(answer.status < 300, answer.text);
          const operation = await show(idOf(answer), mode);
          assert.deepEqual(
            [operation.type, operation.status, operation.response_status, operation.network],
            [type, 'completed', answer.status, null],
          );
          const { object, id } = answer.json;
          assert.deepEqual(operation.resource, resource ?? { type: object, id });
        }
        const patch = { mode, body: { card_name: 'x' }, idempotencyKey: randomUUID() };
        const other = (await createCard(partner, { amount: 5_000 }, { mode })).json.id;
        const updated = await show(idOf(await partner.call('PATCH', `/cards/${other}`, patch)), mode);
        assert.deepEqual([updated.type, updated.resource], ['update_card', { type: 'card', id: other }]);
      });

      it('has no resource if the request was refused, and every retry of a refusal names it', async () => {
        const key = randomUUID();
        const body = { amount: 1_000, external_ref: 'r' };
        const taken = () => createCard(partner, body, { mode, idempotencyKey: key });
        await createCard(partner, body, { mode });
        const refused = await taken();
        expectError(refused, 'external_ref_taken');
        assert.equal(idOf(await taken()), idOf(refused));
        const poor = await createCard(partner, { amount: 1_000_000 }, { mode });
        expectError(poor, 'insufficient_funds');
        const huge = await createCard(partner, { amount: 1_000_001 }, { mode });
        expectError(huge, 'limit_exceeded');
        for (const answer of [refused, poor, huge]) {
          const shown = await show(idOf(answer), mode);
          assert.deepEqual(
            [shown.status, shown.response_status, shown.resource, shown.network, shown.waits_for],
            ['completed', answer.status, null, null, null],
          );
          assert.notEqual(shown.completed_at, null);
        }
      });

      it('there is none for a request that was refused before it began, or had no key', async () => {
        const { json: card } = await createCard(partner, { amount: 1_000 }, { mode });
        const key = randomUUID();
        const answers = [
          await partner.call('POST', `/cards/${card.id}/freeze`, { mode }),
          await post(`/cards/${card.id}/topups`, { amount: 0 }, mode, key),
          await post(`/cards/${card.id}/topups`, { amount: 9_007_199_254_740_000 }, mode, key),
          await post(`/cards/${newId('card')}/topups`, { amount: 100 }, mode, key),
        ];
        assert.deepEqual(
          answers.map(({ status }) => status),
          [200, 400, 400, 404],
        );
        for (const { headers } of answers) assert.equal(headers.get('operation-id'), null);
        assert.deepEqual((await list(`idempotency_key=${key}`, mode)).data, []);
        assert.equal((await list('', mode)).data.length, 1);
      });
    });
  }

  it('of a test endpoint has what it made', async () => {
    const credit = await post('/test/credit', { amount: 100 });
    const credited = await show(idOf(credit));
    assert.deepEqual([credited.type, credited.resource.type], ['test_credit', 'faucet_credit']);
    const [entry] = (await partner.call('GET', '/balance/transactions?limit=1')).json.data;
    assert.deepEqual(entry.source, credited.resource);

    const card = await authorizedCard(partner, 10_000);
    const at = `/test/cards/${card.id}`;
    const made: [type: string, answer: Answer][] = [
      ['simulate_transaction', await post(`${at}/simulate-transaction`, { type: 'purchase', amount: 100 })],
      ['force_capture', await post(`${at}/force-capture`, { amount: 100 })],
    ];
    const authorize = () => post(`${at}/authorizations`, { amount: 100 });
    for (const [verb, body] of [
      ['increment', { amount: 10 }],
      ['capture', { amount: 100 }],
      ['reverse', {}],
      ['expire', {}],
    ] as const) {
      const authorization = await authorize();
      made.push(['create_authorization', authorization]);
      const path = `/test/authorizations/${authorization.json.id}/${verb}`;
      made.push([`${verb}_authorization`, await post(path, body)]);
    }
    for (const [type, answer] of made) {
      assert.ok(answer.status < 300, answer.text);
      const shown = await show(idOf(answer));
      const { object, id } = answer.json;
      assert.deepEqual([shown.type, shown.resource], [type, { type: object, id }]);
    }
  });

  it('shows nothing of the request but its key', async () => {
    const secret = { external_ref: 'ref-4711', card_name: 'Ads-4711', email: 'ada4711@example.com' };
    const answer = await createCard(partner, { amount: 1_234, ...secret });
    const { text } = await partner.call('GET', `/operations/${idOf(answer)}`);
    assert.doesNotMatch(text, /4711|1234/);
  });

  it('is found in the list by its key, and no other is', async () => {
    const ids: string[] = [];
    for (const key of ['key 0', 'key 1 & more', 'key 2'])
      ids.push(idOf(await post('/test/credit', { amount: 100 }, 'test', key)));
    const key = `idempotency_key=${encodeURIComponent('key 1 & more')}`;
    for (const [query, found] of [
      [key, [ids[1]]],
      [`status=completed&${key}`, [ids[1]]],
      [`status=in_progress&${key}`, []],
      ['idempotency_key=unknown', []],
    ] as const) {
      const { data } = await list(query);
      assert.deepEqual(column(data, 'id'), found, query);
    }
  });

  it("is dated in the time of the account's test clock, by which lists are filtered, too", async () => {
    const before = idOf(await post('/test/credit', { amount: 100 }));
    const advanced = await post('/test/clock/advance', { seconds: 86_400 });
    const clock = await show(idOf(advanced));
    assert.deepEqual([clock.type, clock.status, clock.resource], ['advance_test_clock', 'completed', null]);
    const after = idOf(await post('/test/credit', { amount: 100 }));
    const [early, late] = [await show(before), await show(after)];
    assert.ok(Date.parse(late.created) - Date.parse(early.created) >= 86_400_000, late.created);
    assert.ok(early.completed_at >= early.created && late.completed_at >= late.created);
    const { data } = await list(`created_gte=${late.created}`);
    assert.deepEqual(column(data, 'id'), [after]);
    const { data: earlier } = await list(`created_lte=${early.created}`);
    assert.equal(earlier[0]?.id, before);
  });

  it('of a deposit address has the deposit', async () => {
    const id = await seedDeposit(stack, partner.id);
    const claimId = newId('claim');
    await asOwner(
      stack,
      `INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, resource_id, fingerprint, request_id, response_status,
         response_body, lease_expires_at) VALUES ($1, $2, 'live', 'k', 'create_deposit', $3, '', 'req', 201, '', now())`,
      [claimId, partner.id, id],
    );
    const shown = await show(claimId.replace('claim_', 'op_'), 'live');
    assert.deepEqual([shown.type, shown.resource], ['create_deposit_address', { type: 'deposit', id }]);
  });
});
