import assert from 'node:assert/strict';
import type { Mode } from '../../domain/mode.ts';
import { expectError, expectReplay } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { balanceOf, fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('a partner who does what the message says', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack, 10_000);
  });

  const post = (path: string, body: object, idempotencyKey: string, mode: Mode = 'test') =>
    partner.call('POST', path, { body, idempotencyKey, mode });
  const get = async (path: string, mode: Mode = 'test') => (await partner.call('GET', path, { mode })).json;

  for (const mode of ['test', 'live'] as const) {
    it(`learns from a ${mode} 402 what it costs and what is available, for a card and for a top-up`, async () => {
      const card = await post('/cards', { amount: 1_000, external_ref: 'r' }, 'k', mode);
      assert.equal(card.status, 201, card.text);
      const refusals = [
        await post('/cards', { amount: 9_000, external_ref: 'r2' }, 'k2', mode),
        await post(`/cards/${card.json.id}/topups`, { amount: 9_000 }, 'k3', mode),
      ];
      for (const [refusal, costs] of [
        [refusals[0], 9_280],
        [refusals[1], 9_180],
      ] as const) {
        assert.ok(refusal);
        expectError(refusal, 'insufficient_funds');
        assert.match(
          refusal.json.error.message,
          new RegExp(
            `^This costs ${costs} cents with its fees, and 8850 cents are available, so nothing was debited\\. ` +
              'Fund the balance, then send the request with a new Idempotency-Key:',
          ),
        );
      }
      assert.deepEqual(await balanceOf(partner, mode), [8_850, 0, 8_850]);
    });
  }

  it('funds the balance after a 402 and gets the card with a new key, once', async () => {
    const body = { amount: 20_000, external_ref: 'r' };
    const refusal = await post('/cards', body, 'k');
    expectError(refusal, 'insufficient_funds');
    assert.equal((await post('/test/credit', { amount: 100_000 }, 'c')).status, 201);
    expectReplay(await post('/cards', body, 'k'), refusal);
    assert.equal((await post('/cards', body, 'k2')).status, 201);
    assert.deepEqual(await balanceOf(partner), [89_500, 0, 89_500]);
  });

  it('finds the card of a lost response by its external_ref, and does not buy another', async () => {
    const { json: lost } = await createCard(partner, { amount: 1_000, external_ref: 'order-1' });
    const taken = await createCard(partner, { amount: 1_000, external_ref: 'order-1' });
    expectError(taken, 'external_ref_taken');
    assert.match(taken.json.error.message, /look at GET \/cards\?external_ref=… first/);
    const { data } = await get('/cards?external_ref=order-1');
    assert.deepEqual(data, [lost]);
  });

  it('learns after a 422 for another body whether the first request happened, and tops up once', async () => {
    const { json: card } = await createCard(partner, { amount: 1_000 });
    const path = `/cards/${card.id}/topups`;
    const first = await post(path, { amount: 500 }, 'k');
    const other = await post(path, { amount: 501 }, 'k');
    expectError(other, 'idempotency_conflict');
    const [, look = ''] =
      /First look at what the earlier one did: GET \/v1(\S+), or/.exec(other.json.error.message) ?? [];
    assert.deepEqual((await get(look)).resource, { type: 'topup', id: first.json.id });
    expectReplay(await post(path, { amount: 500 }, 'k'), first);
    assert.deepEqual((await get(path)).data, [first.json]);
    const [newest] = (await get('/balance/transactions')).data;
    assert.equal(newest.source.id, first.json.id);
  });
});
