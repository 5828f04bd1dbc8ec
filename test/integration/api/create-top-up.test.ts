import assert from 'node:assert/strict';
import { newId } from '../../../crypto/new-id.ts';
import { CardStatus } from '../../../domain/card-status.ts';
import { expectError } from '../../support/api/answers.ts';
import { forgetNetworkCard } from '../../support/cards.ts';
import { balanceOf } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestStack } from '../../support/stack.ts';
import {
  type Cardholder,
  cardholder,
  listTopUps,
  readCard,
  topUp,
  topUpEvents,
} from '../../support/top-ups.ts';

const FUNDS = 10_000;

describe('POST /cards/{cardId}/topups in test mode', () => {
  let stack: TestStack;
  let holder: Cardholder;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    holder = await cardholder(stack, 'test', FUNDS);
  });

  /** Asserts that no money moved, nothing was made and no event was written. */
  const expectNothing = async () => {
    assert.deepEqual(await balanceOf(holder.partner), [FUNDS, 0, FUNDS]);
    assert.equal((await readCard(holder)).balance, 1_000);
    assert.deepEqual((await listTopUps(holder)).data, []);
    assert.deepEqual(await topUpEvents(stack, holder), []);
  };

  it('answers 201, loads the card at once, and debits amount and fees', async () => {
    const quote = await holder.partner.call('POST', '/quotes', {
      body: { type: 'card_topup', amount: 5_000 },
    });
    const answer = await topUp(holder, 5_000);
    assert.equal(answer.status, 201, answer.text);
    const { id, created, completed_at, ...rest } = answer.json;
    assert.match(id, /^topup_[0-9a-z]{26}$/);
    for (const at of [created, completed_at]) assert.equal(new Date(at).toISOString(), at);
    assert.ok(completed_at >= created);
    assert.deepEqual(rest, {
      object: 'topup',
      card_id: holder.cardId,
      amount: 5_000,
      fees: quote.json.fees,
      total_debited: quote.json.total_debited,
      status: 'succeeded',
      failure_code: null,
      card_balance: 6_000,
      mode: 'test',
    });
    assert.deepEqual(quote.json.fees, [{ type: 'card_funding', amount: 100 }]);
    assert.deepEqual(await balanceOf(holder.partner), [FUNDS - 5_100, 0, FUNDS - 5_100]);
    const card = await readCard(holder);
    assert.deepEqual([card.status, card.balance], ['active', 6_000]);
    const [event, ...more] = await topUpEvents(stack, holder);
    assert.deepEqual(more, []);
    assert.match(event.id, /^evt_[0-9a-z]{26}$/);
    const { id: _, created: at, ...envelope } = event;
    assert.equal(new Date(at).toISOString(), at);
    assert.deepEqual(envelope, {
      type: 'topup.succeeded',
      mode: 'test',
      data: { topup: answer.json, card },
    });
  });

  it('answers 400 without an Idempotency-Key and for a wrong body', async () => {
    expectError(await topUp(holder, 500, { idempotencyKey: '' }), 'idempotency_key_missing', [
      'Idempotency-Key',
    ]);
    expectError(await topUp(holder, 500, { idempotencyKey: 'ü' }), 'idempotency_key_invalid', [
      'Idempotency-Key',
    ]);
    expectError(await topUp(holder, undefined), 'validation_failed', ['amount']);
    const body = { amount: '500', card_id: 'x' };
    expectError(await topUp(holder, 0, { body }), 'validation_failed', ['amount', 'card_id']);
    await expectNothing();
  });

  it('answers 401 without a valid API key', async () => {
    const headers = { authorization: 'Bearer sk_test_x' };
    expectError(await topUp(holder, 500, { headers }), 'invalid_api_key');
  });

  it('answers 402 insufficient_funds if the balance is a cent short of amount and fees', async () => {
    expectError(await topUp(holder, 9_805), 'insufficient_funds');
    await expectNothing();
    assert.equal((await topUp(holder, 9_804)).status, 201);
    assert.deepEqual(await balanceOf(holder.partner), [0, 0, 0]);
  });

  it('answers 404 for a card of another account or mode and for an unknown one, and the key stays unused', async () => {
    const other = await cardholder(stack, 'test', FUNDS);
    const idempotencyKey = 'k';
    for (const cardId of [other.cardId, newId('card'), 'card_1', 'x', "'", '%00']) {
      expectError(await topUp({ ...holder, cardId }, 500, { idempotencyKey }), 'card_not_found');
    }
    expectError(await topUp({ ...holder, mode: 'live' }, 500, { idempotencyKey }), 'card_not_found');
    await expectNothing();
    const answer = await topUp(holder, 500, { idempotencyKey });
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.get('idempotent-replayed'), null);
  });

  for (const status of CardStatus.options.filter((other) => other !== 'active')) {
    it(`answers 409 invalid_state for a card that is ${status}, and says so in the message`, async () => {
      const failureCode = status === 'failed' ? 'issuance_failed' : null;
      await asOwner(stack, 'UPDATE card SET status = $2, failure_code = $3 WHERE id = $1', [
        ...[holder.cardId, status, failureCode],
      ]);
      const answer = await topUp(holder, 500);
      expectError(answer, 'invalid_state');
      assert.match(answer.json.error.message, new RegExp(`^The card is ${status}\\. `));
      await expectNothing();
    });
  }

  it('checks for 409 before 422, and for 422 before 402', async () => {
    const poor = await cardholder(stack, 'test', 0);
    expectError(await topUp(poor, 99), 'limit_exceeded');
    expectError(await topUp(poor, 100), 'insufficient_funds');
    await asOwner(stack, `UPDATE card SET status = 'frozen' WHERE id = $1`, [poor.cardId]);
    expectError(await topUp(poor, 99), 'invalid_state');
  });

  it('answers 405, 413 and 415 as other endpoints do', async () => {
    const { partner, cardId } = holder;
    expectError(await partner.call('PUT', `/cards/${cardId}/topups`), 'method_not_allowed');
    expectError(await topUp(holder, 500, { body: ' '.repeat(70_000) }), 'body_too_large');
    const headers = { 'content-type': 'text/plain' };
    expectError(await topUp(holder, 500, { headers }), 'unsupported_media_type');
    await expectNothing();
  });

  it('adds up over many top-ups, each with the balance that it left', async () => {
    for (const [amount, balance] of [
      [100, 1_100],
      [250, 1_350],
      [4_000, 5_350],
    ] as const) {
      assert.equal((await topUp(holder, amount)).json.card_balance, balance);
    }
    assert.equal((await readCard(holder)).balance, 5_350);
    assert.deepEqual(
      (await listTopUps(holder)).data.map((one: { card_balance: number }) => one.card_balance),
      [5_350, 1_350, 1_100],
    );
  });
});

describe("POST /cards/{cardId}/topups for a live card without the network's id", () => {
  it('answers 409 invalid_state, because the network cannot load it', async () => {
    const stack = await sharedStack();
    const holder = await cardholder(stack, 'live', FUNDS);
    await forgetNetworkCard(stack, holder.cardId);
    const answer = await topUp(holder, 500);
    expectError(answer, 'invalid_state');
    assert.match(
      answer.json.error.message,
      /^The card is active, but we do not have the card network's id for it/,
    );
    assert.deepEqual(await balanceOf(holder.partner, 'live'), [FUNDS, 0, FUNDS]);
  });
});
