import assert from 'node:assert/strict';
import { negotiateLimits } from '../../accounts/partners.ts';
import { fingerprintRequest } from '../../api/http/keyed.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { claimIdempotencyKey } from '../../requests/claim.ts';
import { readClaimResponse, sealRequest } from '../../requests/response.ts';
import { expectError, expectReplay } from '../support/api/answers.ts';
import { changeStatus } from '../support/card-status.ts';
import { createCard, eventTypes, settledCard } from '../support/cards.ts';
import { balanceOf, fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const CARD = { amount: 1_000, external_ref: 'r', email: 'a@example.com' };

/** What every operation's key does is in test/api/rules-idempotency.test.ts. */
describe('an Idempotency-Key', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack, 10_000);
  });

  const post = (path: string, body: unknown, mode: 'test' | 'live' = 'test', idempotencyKey = 'k') =>
    partner.call('POST', path, { body, idempotencyKey, mode });
  const create = (body: unknown, mode?: 'test' | 'live', key?: string) => post('/cards', body, mode, key);
  const expectNew = (answer: Answer) => {
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.get('idempotent-replayed'), null);
  };

  it('replays a 202 unchanged when what was accepted has succeeded', async () => {
    const body = { amount: 1_041, external_ref: 'r' };
    const card = await create(body, 'live');
    assert.deepEqual([card.status, card.json.status], [202, 'funding_pending'], card.text);
    assert.equal((await settledCard(partner, card.json.id)).status, 'active');
    expectReplay(await create(body, 'live'), card);

    const path = `/cards/${card.json.id}/topups`;
    const topUp = await post(path, { amount: 1_041 }, 'live', 'top-up');
    assert.equal(topUp.status, 202, topUp.text);
    const settled = () => partner.call('GET', `/topups/${topUp.json.id}`, { mode: 'live' });
    await until('the top-up has succeeded', async () => (await settled()).json.status === 'succeeded');
    expectReplay(await post(path, { amount: 1_041 }, 'live', 'top-up'), topUp);
  });

  const REFUSALS: [what: string, status: number, code: string, body: object, mode?: 'live'][] = [
    ['402 for insufficient funds', 402, 'insufficient_funds', { amount: 10_000, external_ref: 'r2' }],
    ['402 from the network', 402, 'provider_declined', { amount: 142, external_ref: 'r2' }, 'live'],
    ['409 for a taken external_ref', 409, 'external_ref_taken', CARD],
    ['422 for a limit', 422, 'limit_exceeded', { amount: 99, external_ref: 'r2' }],
    ['422 for a product', 422, 'product_not_allowed', { ...CARD, external_ref: 'r2', product_code: 'X' }],
  ];
  for (const [what, status, code, body, mode] of REFUSALS) {
    it(`replays a ${what}, whatever the balance is by then`, async () => {
      expectNew(await create(CARD, 'test', 'first'));
      const first = await create(body, mode);
      assert.equal(first.status, status, first.text);
      assert.equal(first.json.error.code, code);
      // The error has the id of the refused request; the replay has an id of its own in its header.
      assert.equal(first.json.error.request_id, first.headers.get('request-id'));
      await post('/test/credit', { amount: 10_000_000 }, 'test', 'c');
      expectReplay(await create(body, mode), first);
    });
  }

  it('replays what a live top-up was refused for', async () => {
    const path = `/cards/${(await create(CARD, 'live', 'first')).json.id}/topups`;
    for (const [amount, code] of [
      [99, 'limit_exceeded'],
      [9_900, 'insufficient_funds'],
      [542, 'provider_declined'],
    ] as const) {
      const first = await post(path, { amount }, 'live', code);
      expectError(first, code);
      expectReplay(await post(path, { amount }, 'live', code), first);
    }
    assert.deepEqual((await partner.call('GET', path, { mode: 'live' })).json.data, []);
  });

  for (const mode of ['test', 'live'] as const) {
    it(`gets one refusal in ${mode} mode for 20 requests at once, unless they are told to wait`, async () => {
      const body = { amount: 1_000_000, external_ref: 'r' };
      const answers = await Promise.all(Array.from({ length: 20 }, () => create(body, mode)));
      const refusals = answers.filter((answer) => mode === 'test' || answer.status !== 409);
      for (const answer of answers) {
        if (mode === 'live' && answer.status === 409) expectError(answer, 'idempotency_in_flight');
        else assert.equal(answer.text, refusals[0]?.text);
      }
      assert.equal(refusals[0]?.json.error.code, 'insufficient_funds');
      assert.equal(refusals.filter((answer) => answer.headers.get('idempotent-replayed') === null).length, 1);
      assert.deepEqual(await balanceOf(partner, mode), [10_000, 0, 10_000]);
    });
  }

  it('stands for one request in each account and mode', async () => {
    const other = await fundedPartner(stack, 10_000);
    const answers = [
      await create(CARD),
      await create({ ...CARD, amount: 2_000 }, 'live'),
      await other.call('POST', '/cards', { body: { ...CARD, amount: 3_000 }, idempotencyKey: 'k' }),
    ];
    for (const answer of answers) expectNew(answer);
    assert.deepEqual(
      answers.map(({ json }) => json.balance),
      [1_000, 2_000, 3_000],
    );
  });

  it('is compared with its case, inner spaces and all 255 characters', async () => {
    const keys = ['a', 'A', 'a b', `${'x'.repeat(254)}1`, `${'x'.repeat(254)}2`, "'; --", '{}'];
    for (const [index, key] of keys.entries())
      expectNew(await create({ amount: 100, external_ref: `r-${index}` }, 'test', key));
  });

  for (const mode of ['test', 'live'] as const) {
    it(`is free after a 400 in ${mode} mode that depends on the fees`, async () => {
      const amount = MAX_AMOUNT_CENTS;
      expectError(await create({ ...CARD, amount }, mode), 'validation_failed', ['amount']);
      const card = await create(CARD, mode);
      expectNew(card);
      await negotiateLimits(stack.operator, partner.id, { maxCardCents: MAX_AMOUNT_CENTS });
      const path = `/cards/${card.json.id}/topups`;
      expectError(await post(path, { amount }, mode, 'top-up'), 'validation_failed', ['amount']);
      expectNew(await post(path, { amount: 1_000 }, mode, 'top-up'));
    });
  }

  for (const [name, body] of [
    ['the same body', { ...CARD, amount: MAX_AMOUNT_CENTS }],
    ['another body', CARD],
  ] as const) {
    it(`is free for ${name} after a 400 whose process died before it freed the key`, async () => {
      await leaveInvalid(stack, partner);
      const answer = await create(body, 'live');
      assert.equal(answer.status, body === CARD ? 201 : 400, answer.text);
      assert.equal(answer.headers.get('idempotent-replayed'), null);
    });
  }

  it('is optional for a freeze: without one, or with an empty one, two at once are judged one after the other', async () => {
    const { json: card } = await createCard(partner, { amount: 1_000 });
    const freeze = (options = {}) => changeStatus(partner, card.id, 'freeze', options);
    const answers = await Promise.all([freeze(), freeze({ idempotencyKey: '' })]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
    const refused = answers.find(({ status }) => status === 409);
    assert.match(refused?.json.error.message, /^The card is frozen\. /);
    assert.deepEqual(await eventTypes(stack, card.id), ['card.issued', 'card.frozen']);
  });
});

/** What is left if the API dies once the worker has found that the request can't be carried out. */
async function leaveInvalid(
  { orm, operator: { ring } }: TestStack,
  { id: partnerId }: TestPartner,
): Promise<void> {
  const claimId = newId('claim');
  const body = { ...CARD, amount: MAX_AMOUNT_CENTS };
  await claimIdempotencyKey(
    { orm, ring },
    {
      ...{ claimId, partnerId, mode: 'live', key: 'k', operation: 'create_card', cardId: null, leaseMs: 0 },
      resourceId: newId('card'),
      fingerprint: fingerprintRequest('post', '/v1/cards', body),
      sealedRequest: sealRequest(ring, claimId, body),
      requestId: newId('req'),
      apiKeyId: null,
      clientAddress: null,
    },
  );
  const response = await until('it has a response', () => readClaimResponse({ orm, ring }, claimId));
  assert.equal(response.status, 400, response.body);
}
