import assert from 'node:assert/strict';
import { negotiateLimits } from '../../accounts/partners.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { expectError, expectReplay } from '../support/api/answers.ts';
import { changeStatus } from '../support/card-status.ts';
import { createCard, eventTypes } from '../support/cards.ts';
import { balanceOf, fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../support/stack.ts';

const CARD = { amount: 1_000, external_ref: 'r', email: 'a@example.com' };

/**
 * What every operation's key does is in test/api/rules-idempotency.test.ts, what its claim does in
 * test/requests/claim-idempotency-key.test.ts, and the replay of a 202 in test/cards/slow-operations.test.ts.
 */
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

  it('replays a refusal, whatever the balance is by then', async () => {
    expectNew(await create(CARD, 'test', 'first'));
    const topUps = `/cards/${(await create(CARD, 'live', 'first')).json.id}/topups`;
    const other = { ...CARD, external_ref: 'r2' };
    const refusals = [];
    for (const [code, mode, path, body] of [
      ['insufficient_funds', 'test', '/cards', { ...other, amount: 10_000 }],
      ['external_ref_taken', 'test', '/cards', CARD],
      ['limit_exceeded', 'test', '/cards', { ...other, amount: 99 }],
      ['product_not_allowed', 'test', '/cards', { ...other, product_code: 'X' }],
      ['provider_declined', 'live', '/cards', { ...other, amount: 142 }],
      ['limit_exceeded', 'live', topUps, { amount: 99 }],
      ['insufficient_funds', 'live', topUps, { amount: 9_900 }],
      ['provider_declined', 'live', topUps, { amount: 542 }],
    ] as const) {
      const again = () => post(path, body, mode, `${code} ${path}`);
      const first = await again();
      expectError(first, code);
      refusals.push({ first, again });
    }
    await post('/test/credit', { amount: 10_000_000 }, 'test', 'c');
    for (const { first, again } of refusals) expectReplay(await again(), first);
    assert.deepEqual((await partner.call('GET', topUps, { mode: 'live' })).json.data, []);
  });

  for (const mode of ['test', 'live'] as const) {
    it(`gets one refusal in ${mode} mode for 20 requests at once, unless they are told to wait`, async () => {
      const body = { amount: 1_000_000, external_ref: 'r' };
      const answers = await Promise.all(Array.from({ length: 20 }, () => create(body, mode)));
      const refusals = answers.filter(({ status }) => mode === 'test' || status !== 409);
      for (const answer of answers) {
        if (mode === 'live' && answer.status === 409) expectError(answer, 'idempotency_in_flight');
        else assert.equal(answer.text, refusals[0]?.text);
      }
      assert.equal(refusals[0]?.json.error.code, 'insufficient_funds');
      assert.equal(refusals.filter((answer) => answer.headers.get('idempotent-replayed') === null).length, 1);
      assert.deepEqual(await balanceOf(partner, mode), [10_000, 0, 10_000]);
    });

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

  it('is compared with its case, inner spaces and all 255 characters', async () => {
    const keys = ['a', 'A', 'a b', `${'x'.repeat(254)}1`, `${'x'.repeat(254)}2`, "'; --", '{}'];
    for (const [index, key] of keys.entries())
      expectNew(await create({ amount: 100, external_ref: `r-${index}` }, 'test', key));
  });

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
