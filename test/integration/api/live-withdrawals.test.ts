import assert from 'node:assert/strict';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { expectError } from '../../support/api/answers.ts';
import { changeStatus } from '../../support/card-status.ts';
import { forgetNetworkCard } from '../../support/cards.ts';
import { balanceOf } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestStack } from '../../support/stack.ts';
import { type Cardholder, cardholder, readCard, topUp } from '../../support/top-ups.ts';
import { until } from '../../support/until.ts';
import { listWithdrawals, settledWithdrawal, withdraw, withdrawalEvents } from '../../support/withdrawals.ts';

const FUNDS = 100_000;
/** What is on the card: what it was issued with, and a top-up with its fee of 2 %. */
const CARD = 1_000 + 9_000;
const LEFT = FUNDS - 9_180;

describe('POST /cards/{cardId}/withdrawals in live mode', function () {
  this.timeout(60_000);
  let stack: TestStack;
  let holder: Cardholder;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    holder = await cardholder(stack, 'live', FUNDS);
    assert.equal((await topUp(holder, 9_000)).status, 201);
  });

  const balance = () => balanceOf(holder.partner, 'live');
  const cardBalances = async () => {
    const card = await readCard(holder);
    return [card.balance, card.available_balance];
  };
  const block = () => changeStatus(holder.partner, holder.cardId, 'block', { mode: 'live' });
  const balanceTypes = async (limit: number): Promise<[string, number][]> => {
    const path = `/balance/transactions?limit=${limit}`;
    const { json } = await holder.partner.call('GET', path, { mode: 'live' });
    return json.data.map(({ type, amount }: { type: string; amount: number }) => [type, amount]);
  };
  const expectOneEvent = async (type: string, withdrawal: unknown) => {
    const [event, ...more] = await withdrawalEvents(stack, holder);
    assert.deepEqual(more, []);
    assert.deepEqual([event.type, event.mode], [type, 'live']);
    assert.deepEqual(event.data, { withdrawal, card: await readCard(holder) });
  };
  // biome-ignore lint/suspicious/noExplicitAny: a withdrawal as the API gives it.
  const expectWithdrawn = async (json: any, amount: number) => {
    assert.deepEqual(
      [json.status, json.amount, json.failure_code, json.card_balance],
      ['succeeded', amount, null, CARD - amount],
    );
    assert.deepEqual(await balance(), [LEFT + amount, 0, LEFT + amount]);
    assert.deepEqual(await cardBalances(), [CARD - amount, CARD - amount]);
    await expectOneEvent('withdrawal.succeeded', json);
  };
  // biome-ignore lint/suspicious/noExplicitAny: a withdrawal as the API gives it.
  const expectPending = async (json: any, amount: number) => {
    assert.deepEqual(
      [json.status, json.failure_code, json.card_balance, json.completed_at],
      ['pending', null, CARD, null],
    );
    // What a card holds is not in the balance's `held`.
    assert.deepEqual(await balance(), [LEFT, 0, LEFT]);
    assert.deepEqual(await cardBalances(), [CARD, CARD - amount]);
    assert.deepEqual(await withdrawalEvents(stack, holder), []);
  };

  for (const [amount, what] of [
    [1_000, 'an amount with any other ending'],
    [5_044, 'an amount ending in 44, whose answer is lost and which is found by asking again'],
    [5_048, 'an amount ending in 48, which succeeds after three 503s'],
  ] as const) {
    it(`answers 201 for ${what}`, async () => {
      const answer = await withdraw(holder, amount);
      assert.equal(answer.status, 201, answer.text);
      await expectWithdrawn(answer.json, amount);
      assert.deepEqual(await settledWithdrawal(holder, answer.json.id), answer.json);
      assert.deepEqual(await balanceTypes(1), [['card_withdrawal', amount]]);
    });
  }

  for (const [amount, what] of [
    [5_041, 'an amount ending in 41, which the network completes about 2 s later'],
    [5_045, 'an amount ending in 45, whose callback never comes and whose outcome polling finds'],
  ] as const) {
    it(`answers 202 for ${what}, and the withdrawal succeeds`, async () => {
      const answer = await withdraw(holder, amount);
      assert.equal(answer.status, 202, answer.text);
      await expectPending(answer.json, amount);
      const now = await settledWithdrawal(holder, answer.json.id);
      assert.deepEqual([now.id, now.created], [answer.json.id, answer.json.created]);
      await expectWithdrawn(now, amount);
    });
  }

  it('answers 202 for an amount ending in 46, whose callback comes twice, and it succeeds once', async () => {
    const { status, json } = await withdraw(holder, 5_046);
    assert.equal(status, 202);
    const now = await settledWithdrawal(holder, json.id);
    await until('both callbacks came', async () => {
      const left = await asOwner(stack, 'SELECT FROM simulated_network.callback WHERE token = $1', [json.id]);
      return left.length === 0;
    });
    await expectWithdrawn(now, 5_046);
  });

  it('answers 402 provider_declined for an amount ending in 42, with no withdrawal, event or hold', async () => {
    expectError(await withdraw(holder, 5_042), 'provider_declined');
    assert.deepEqual(await balance(), [LEFT, 0, LEFT]);
    assert.deepEqual(await cardBalances(), [CARD, CARD]);
    assert.deepEqual((await listWithdrawals(holder)).data, []);
    assert.deepEqual(await asOwner(stack, 'SELECT FROM withdrawal WHERE card_id = $1', [holder.cardId]), []);
    assert.deepEqual(await withdrawalEvents(stack, holder), []);
  });

  it('answers 202 for an amount ending in 43, and the withdrawal fails and frees the money on the card', async () => {
    const answer = await withdraw(holder, 5_043);
    assert.equal(answer.status, 202, answer.text);
    const now = await settledWithdrawal(holder, answer.json.id);
    assert.ok(now.completed_at > now.created);
    const ended = { status: 'failed', failure_code: 'withdrawal_failed', completed_at: now.completed_at };
    assert.deepEqual(now, { ...answer.json, ...ended });
    assert.deepEqual(await balance(), [LEFT, 0, LEFT]);
    assert.deepEqual(await cardBalances(), [CARD, CARD]);
    await expectOneEvent('withdrawal.failed', now);
  });

  it('answers 202 for an amount ending in 47, which stays pending with its money held on the card', async () => {
    const answer = await withdraw(holder, 5_047);
    assert.equal(answer.status, 202, answer.text);
    await expectPending(answer.json, 5_047);
    assert.deepEqual((await listWithdrawals(holder)).data, [answer.json]);
    expectError(await withdraw(holder, CARD - 5_047 + 1), 'insufficient_card_balance');
    const { json: event } = await holder.partner.call('GET', '/events?limit=1', { mode: 'live' });
    assert.equal(event.data[0].type, 'topup.succeeded');
  });

  it("shows the card's current balance while it is pending, and the balance at its end afterwards", async () => {
    const pending = await withdraw(holder, 5_047);
    const done = await withdraw(holder, 1_000);
    assert.equal((await topUp(holder, 2_000)).status, 201);
    const shown = (await listWithdrawals(holder)).data.map((one: { id: string; card_balance: number }) => [
      one.id,
      one.card_balance,
    ]);
    assert.deepEqual(shown, [
      [done.json.id, CARD - 1_000],
      [pending.json.id, CARD + 1_000],
    ]);
  });

  it('answers 402 insufficient_card_balance before the network is asked, with nothing left behind', async () => {
    const answer = await withdraw(holder, CARD + 1);
    expectError(answer, 'insufficient_card_balance');
    assert.match(answer.json.error.message, new RegExp(`the card has ${CARD} cents available`));
    assert.deepEqual((await listWithdrawals(holder)).data, []);
    assert.deepEqual(await withdrawalEvents(stack, holder), []);
    assert.deepEqual(await cardBalances(), [CARD, CARD]);
    const asked = await asOwner(
      stack,
      `SELECT FROM simulated_network.operation WHERE kind = 'card.withdrawal'
         AND request ->> 'networkCardId' = (SELECT network_card_id FROM card WHERE id = $1)`,
      [holder.cardId],
    );
    assert.deepEqual(asked, []);
  });

  it('works on a frozen card, and answers 409 for one whose id the network has not given', async () => {
    await changeStatus(holder.partner, holder.cardId, 'freeze', { mode: 'live' });
    assert.equal((await withdraw(holder, 1_000)).status, 201);
    await forgetNetworkCard(stack, holder.cardId);
    const answer = await withdraw(holder, 1_000);
    expectError(answer, 'invalid_state');
    assert.match(answer.json.error.message, /^We do not have the card network's id for this card/);
  });

  it("stands when the card is blocked meanwhile and the network's answer is yes", async () => {
    const { json } = await withdraw(holder, 5_041);
    const blocked = await block();
    assert.equal(blocked.status, 200, blocked.text);
    const now = await settledWithdrawal(holder, json.id);
    assert.deepEqual([now.status, now.failure_code, now.card_balance], ['succeeded', null, 0]);
    assert.deepEqual(await balance(), [LEFT + CARD, 0, LEFT + CARD]);
    assert.deepEqual(await cardBalances(), [0, 0]);
    await expectOneEvent('withdrawal.succeeded', now);
    assert.deepEqual(await balanceTypes(2), [
      ['card_withdrawal', 5_041],
      ['card_release', CARD - 5_041],
    ]);
  });

  it('fails when the card is blocked meanwhile and the answer is no, and the money goes to the balance', async () => {
    const { json } = await withdraw(holder, 5_043);
    const blocked = await block();
    // The block releases what is free; what is held stays on the card.
    assert.deepEqual([blocked.json.balance, blocked.json.available_balance], [5_043, 0], blocked.text);
    const now = await settledWithdrawal(holder, json.id);
    assert.deepEqual([now.status, now.failure_code, now.card_balance], ['failed', 'withdrawal_failed', 0]);
    assert.deepEqual(await balance(), [LEFT + CARD, 0, LEFT + CARD]);
    assert.deepEqual(await cardBalances(), [0, 0]);
    await expectOneEvent('withdrawal.failed', now);
    assert.deepEqual(await balanceTypes(2), [
      ['card_release', 5_043],
      ['card_release', CARD - 5_043],
    ]);
    expectError(await withdraw(holder, 1), 'invalid_state');
  });

  it('takes exactly what the card has when 20 come at once', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => withdraw(holder, 1_500)));
    const made = answers.filter(({ status }) => status === 201);
    assert.equal(made.length, 6);
    for (const answer of answers) {
      if (answer.status !== 201) expectError(answer, 'insufficient_card_balance');
    }
    assert.deepEqual(await cardBalances(), [CARD - 9_000, CARD - 9_000]);
    assert.deepEqual(await balance(), [LEFT + 9_000, 0, LEFT + 9_000]);
  });

  it('loses and makes no cent when top-ups, withdrawals and a block come at once', async () => {
    const [toppedUp, withdrawn, blocked] = await Promise.all([
      Promise.all([1_000, 1_041, 1_043].map((amount) => topUp(holder, amount))),
      Promise.all(
        [1_500, 1_541, 1_543, 1_544, 1_500, 1_500, 1_500].map((amount) => withdraw(holder, amount)),
      ),
      block(),
    ]);
    assert.equal(blocked.status, 200, blocked.text);
    for (const { status, text } of [...toppedUp, ...withdrawn]) {
      assert.ok([201, 202, 402, 409].includes(status), text);
    }
    for (const { status, json } of withdrawn) {
      if (status < 400) await settledWithdrawal(holder, json.id);
    }
    const { json } = await holder.partner.call('GET', `/cards/${holder.cardId}/topups`, { mode: 'live' });
    const feeCents = json.data
      .filter(({ status }: { status: string }) => status === 'succeeded')
      .reduce((sum: number, one: { fees: { amount: number }[] }) => sum + (one.fees[0]?.amount ?? 0), 0);
    await until('nothing is held', async () => (await balance())[1] === 0);
    assert.deepEqual(await cardBalances(), [0, 0]);
    // The first top-up's fee is in LEFT already.
    const total = LEFT + CARD - (feeCents - 180);
    assert.deepEqual(await balance(), [total, 0, total]);
  });

  it('leaves a ledger that adds up', async () => {
    assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
  });
});
