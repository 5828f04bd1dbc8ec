import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { expectError } from '../../support/api/answers.ts';
import { balanceOf } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestStack } from '../../support/stack.ts';
import {
  CARD_CENTS,
  type Cardholder,
  cardholder,
  feeOf,
  listTopUps,
  readCard,
  settledTopUp,
  topUp,
  topUpEvents,
} from '../../support/top-ups.ts';

const FUNDS = 100_000;

describe('POST /cards/{cardId}/topups in live mode', () => {
  let stack: TestStack;
  let holder: Cardholder;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    holder = await cardholder(stack, 'live', FUNDS);
  });

  const balance = () => balanceOf(holder.partner, 'live');
  const expectOneEvent = async (type: string, topup: unknown) => {
    const [event, ...more] = await topUpEvents(stack, holder);
    assert.deepEqual(more, []);
    assert.deepEqual([event.type, event.mode], [type, 'live']);
    assert.deepEqual(event.data, { topup, card: await readCard(holder) });
  };
  // biome-ignore lint/suspicious/noExplicitAny: a top-up as the API gives it.
  const expectLoaded = async (json: any, amount: number) => {
    assert.deepEqual(
      [json.status, json.amount, json.fees, json.total_debited, json.failure_code, json.card_balance],
      [
        ...['succeeded', amount, [{ type: 'card_funding', amount: feeOf(amount) }], amount + feeOf(amount)],
        ...[null, CARD_CENTS + amount],
      ],
    );
    const left = FUNDS - amount - feeOf(amount);
    assert.deepEqual(await balance(), [left, 0, left]);
    assert.equal((await readCard(holder)).balance, CARD_CENTS + amount);
    await expectOneEvent('topup.succeeded', json);
  };
  // biome-ignore lint/suspicious/noExplicitAny: a top-up as the API gives it.
  const expectPending = async (json: any, amount: number) => {
    assert.deepEqual(
      [json.status, json.failure_code, json.card_balance, json.completed_at],
      ['pending', null, CARD_CENTS, null],
    );
    const debited = amount + feeOf(amount);
    assert.deepEqual(await balance(), [FUNDS - debited, debited, FUNDS]);
    assert.equal((await readCard(holder)).balance, CARD_CENTS);
    assert.deepEqual(await topUpEvents(stack, holder), []);
  };

  for (const [amount, what] of [
    [1_000, 'an amount with any other ending'],
    [5_044, 'an amount ending in 44, whose answer is lost and which is found by asking again'],
    [5_048, 'an amount ending in 48, which succeeds after three 503s'],
  ] as const) {
    it(`answers 201 for ${what}`, async () => {
      const answer = await topUp(holder, amount);
      assert.equal(answer.status, 201, answer.text);
      await expectLoaded(answer.json, amount);
      assert.deepEqual(await settledTopUp(holder, answer.json.id), answer.json);
    });
  }

  for (const [amount, what] of [
    [5_041, 'an amount ending in 41, which the network completes about 2 s later'],
    [5_045, 'an amount ending in 45, whose callback never comes and whose outcome polling finds'],
  ] as const) {
    it(`answers 202 for ${what}, and the top-up succeeds`, async () => {
      const answer = await topUp(holder, amount);
      assert.equal(answer.status, 202, answer.text);
      await expectPending(answer.json, amount);
      const now = await settledTopUp(holder, answer.json.id);
      assert.deepEqual([now.id, now.created], [answer.json.id, answer.json.created]);
      await expectLoaded(now, amount);
    });
  }

  it('answers 202 for an amount ending in 46, whose callback comes twice, and the top-up succeeds once', async () => {
    const { status, json } = await topUp(holder, 5_046);
    assert.equal(status, 202);
    const now = await settledTopUp(holder, json.id);
    const callbacks = () =>
      asOwner(stack, 'SELECT FROM simulated_network.callback WHERE token = $1', [json.id]);
    while ((await callbacks()).length > 0) await sleep(50);
    await expectLoaded(now, 5_046);
  });

  it('answers 402 provider_declined for an amount ending in 42, with no top-up, event or hold', async () => {
    expectError(await topUp(holder, 5_042), 'provider_declined');
    assert.deepEqual(await balance(), [FUNDS, 0, FUNDS]);
    assert.deepEqual((await listTopUps(holder)).data, []);
    assert.deepEqual(await asOwner(stack, 'SELECT FROM topup WHERE card_id = $1', [holder.cardId]), []);
    assert.deepEqual(await topUpEvents(stack, holder), []);
    assert.equal((await readCard(holder)).balance, CARD_CENTS);
  });

  it('answers 202 for an amount ending in 43, and the top-up fails and releases every held cent', async () => {
    const answer = await topUp(holder, 5_043);
    assert.equal(answer.status, 202, answer.text);
    const now = await settledTopUp(holder, answer.json.id);
    assert.ok(now.completed_at > now.created);
    const ended = { status: 'failed', failure_code: 'topup_failed', completed_at: now.completed_at };
    assert.deepEqual(now, { ...answer.json, ...ended });
    assert.deepEqual(await balance(), [FUNDS, 0, FUNDS]);
    await expectOneEvent('topup.failed', now);
  });

  it('answers 202 for an amount ending in 47, which stays pending with its money held', async () => {
    const answer = await topUp(holder, 5_047);
    assert.equal(answer.status, 202, answer.text);
    await expectPending(answer.json, 5_047);
    assert.deepEqual((await listTopUps(holder)).data, [answer.json]);
  });

  it("shows the card's current balance while it is pending, and the balance at its end afterwards", async () => {
    const pending = await topUp(holder, 5_047);
    const loaded = await topUp(holder, 1_000);
    const last = await topUp(holder, 2_000);
    assert.deepEqual(
      (await listTopUps(holder)).data.map((one: { id: string; card_balance: number }) => [
        one.id,
        one.card_balance,
      ]),
      [
        [last.json.id, 4_000],
        [loaded.json.id, 2_000],
        [pending.json.id, 4_000],
      ],
    );
  });

  it('leads to a failed top-up with a released hold if the card is blocked meanwhile', async () => {
    const accepted = await topUp(holder, 5_047);
    const { partner, cardId, mode } = holder;
    const blocked = await partner.call('POST', `/cards/${cardId}/block`, { mode });
    assert.equal(blocked.status, 200, blocked.text);
    const now = await settledTopUp(holder, accepted.json.id);
    assert.deepEqual([now.status, now.failure_code, now.card_balance], ['failed', 'card_blocked', 0]);
    assert.deepEqual(await balance(), [FUNDS + CARD_CENTS, 0, FUNDS + CARD_CENTS]);
    await expectOneEvent('topup.failed', now);
    expectError(await topUp(holder, 500), 'invalid_state');
  });

  it('ignores these digits in test mode', async () => {
    const test = await cardholder(stack, 'test', FUNDS);
    for (let digits = 41; digits <= 48; digits++) {
      const answer = await topUp(test, 500 + digits);
      assert.deepEqual([answer.status, answer.json.status], [201, 'succeeded'], answer.text);
    }
  });

  it('leaves a ledger that adds up', async () => {
    assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
  });
});
