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

describe("POST /cards/{cardId}/topups in live mode, by the amount's last two digits", () => {
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
    [1_000, 'any others: it succeeds at once'],
    [5_044, '44: the answer is lost, and asking again finds the top-up'],
    [5_048, '48: three times 503, then success'],
  ] as const) {
    it(`${what}: 201`, async () => {
      const answer = await topUp(holder, amount);
      assert.equal(answer.status, 201, answer.text);
      await expectLoaded(answer.json, amount);
      assert.deepEqual(await settledTopUp(holder, answer.json.id), answer.json);
    });
  }

  for (const [amount, what] of [
    [5_041, '41: accepted, succeeds about 2 s later'],
    [5_045, '45: accepted, the callback never comes, polling finds it'],
  ] as const) {
    it(`${what}: 202, then succeeded`, async () => {
      const answer = await topUp(holder, amount);
      assert.equal(answer.status, 202, answer.text);
      await expectPending(answer.json, amount);
      const now = await settledTopUp(holder, answer.json.id);
      assert.deepEqual([now.id, now.created], [answer.json.id, answer.json.created]);
      await expectLoaded(now, amount);
    });
  }

  it('46: accepted, the callback comes twice: 202, then succeeded, once', async () => {
    const { status, json } = await topUp(holder, 5_046);
    assert.equal(status, 202);
    const now = await settledTopUp(holder, json.id);
    const callbacks = () =>
      asOwner(stack, 'SELECT FROM simulated_network.callback WHERE token = $1', [json.id]);
    while ((await callbacks()).length > 0) await sleep(50);
    await expectLoaded(now, 5_046);
  });

  it('42: declined: 402 provider_declined; no top-up, no event, nothing held', async () => {
    expectError(await topUp(holder, 5_042), 'provider_declined');
    assert.deepEqual(await balance(), [FUNDS, 0, FUNDS]);
    assert.deepEqual((await listTopUps(holder)).data, []);
    assert.deepEqual(await asOwner(stack, 'SELECT FROM topup WHERE card_id = $1', [holder.cardId]), []);
    assert.deepEqual(await topUpEvents(stack, holder), []);
    assert.equal((await readCard(holder)).balance, CARD_CENTS);
  });

  it('43: accepted: 202, then failed, with every held cent released', async () => {
    const answer = await topUp(holder, 5_043);
    assert.equal(answer.status, 202, answer.text);
    const now = await settledTopUp(holder, answer.json.id);
    assert.ok(now.completed_at > now.created);
    const ended = { status: 'failed', failure_code: 'topup_failed', completed_at: now.completed_at };
    assert.deepEqual(now, { ...answer.json, ...ended });
    assert.deepEqual(await balance(), [FUNDS, 0, FUNDS]);
    await expectOneEvent('topup.failed', now);
  });

  it('47: accepted and never finishes: 202, pending, and held', async () => {
    const answer = await topUp(holder, 5_047);
    assert.equal(answer.status, 202, answer.text);
    await expectPending(answer.json, 5_047);
    assert.deepEqual((await listTopUps(holder)).data, [answer.json]);
  });

  it('a pending one shows the balance of the card as it is now, one that ended as it was then', async () => {
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

  it('a block fails one that was accepted, and takes its money off the hold', async () => {
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

  it('do nothing in test mode', async () => {
    const test = await cardholder(stack, 'test', FUNDS);
    for (let digits = 41; digits <= 48; digits++) {
      const answer = await topUp(test, 500 + digits);
      assert.deepEqual([answer.status, answer.json.status], [201, 'succeeded'], answer.text);
    }
  });

  it('leave a ledger in which everything adds up', async () => {
    assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
  });
});
