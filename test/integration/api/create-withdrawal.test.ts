import assert from 'node:assert/strict';
import { newId } from '../../../crypto/new-id.ts';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { expectError } from '../../support/api/answers.ts';
import { balanceOf } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestStack } from '../../support/stack.ts';
import { type Cardholder, cardholder, readCard } from '../../support/top-ups.ts';
import { listWithdrawals, withdraw, withdrawalEvents } from '../../support/withdrawals.ts';

/** In the account besides what is on the card, which is 1,000 cents. */
const FUNDS = 5_000;

describe('POST /cards/{cardId}/withdrawals in test mode', () => {
  let stack: TestStack;
  let holder: Cardholder;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    holder = await cardholder(stack, 'test', FUNDS);
  });
  after(async () => {
    assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
  });

  /** Asserts that no money moved, nothing was made and no event was written. */
  const expectNothing = async () => {
    assert.deepEqual(await balanceOf(holder.partner), [FUNDS, 0, FUNDS]);
    const card = await readCard(holder);
    assert.deepEqual([card.balance, card.available_balance], [1_000, 1_000]);
    assert.deepEqual((await listWithdrawals(holder)).data, []);
    assert.deepEqual(await withdrawalEvents(stack, holder), []);
  };

  it('answers 201 and moves the money to the balance at once, without a fee', async () => {
    const answer = await withdraw(holder, 400);
    assert.equal(answer.status, 201, answer.text);
    const { id, created, completed_at, ...rest } = answer.json;
    assert.match(id, /^wdr_[0-9a-z]{26}$/);
    for (const at of [created, completed_at]) assert.equal(new Date(at).toISOString(), at);
    assert.ok(completed_at >= created);
    assert.deepEqual(rest, {
      object: 'withdrawal',
      card_id: holder.cardId,
      amount: 400,
      status: 'succeeded',
      failure_code: null,
      card_balance: 600,
      mode: 'test',
    });
    assert.deepEqual(await balanceOf(holder.partner), [FUNDS + 400, 0, FUNDS + 400]);
    const card = await readCard(holder);
    assert.deepEqual([card.balance, card.available_balance], [600, 600]);
    const [event, ...more] = await withdrawalEvents(stack, holder);
    assert.deepEqual(more, []);
    assert.deepEqual(
      [event.type, event.mode, event.data],
      ['withdrawal.succeeded', 'test', { withdrawal: answer.json, card }],
    );
    const { json: changes } = await holder.partner.call('GET', '/balance/transactions?limit=1');
    const [{ type, amount, source }] = changes.data;
    assert.deepEqual([type, amount, source], ['card_withdrawal', 400, { type: 'withdrawal', id }]);
    assert.deepEqual((await holder.partner.call('GET', `/withdrawals/${id}`)).json, answer.json);
  });

  it('takes the last cent off a card, and a frozen card', async () => {
    await asOwner(stack, `UPDATE card SET status = 'frozen' WHERE id = $1`, [holder.cardId]);
    const answer = await withdraw(holder, 1_000);
    assert.deepEqual([answer.status, answer.json.card_balance], [201, 0], answer.text);
    assert.deepEqual(await balanceOf(holder.partner), [FUNDS + 1_000, 0, FUNDS + 1_000]);
    expectError(await withdraw(holder, 1), 'insufficient_card_balance');
  });

  it('counts towards no limit and gives nothing back of what was counted', async () => {
    const usage = () =>
      asOwner(
        stack,
        'SELECT loaded_cents, open_cards FROM account_usage WHERE partner_id = $1 AND mode = $2',
        [holder.partner.id, 'test'],
      );
    const before = await usage();
    assert.equal((await withdraw(holder, 1)).status, 201);
    assert.deepEqual(await usage(), before);
  });

  it('answers 400 without an Idempotency-Key and for a wrong body', async () => {
    const keyless = await withdraw(holder, 500, { idempotencyKey: '' });
    expectError(keyless, 'idempotency_key_missing', ['Idempotency-Key']);
    for (const amount of [undefined, null, 0, -1, 1.5, '500', 2 ** 53, 1e300]) {
      expectError(await withdraw(holder, amount), 'validation_failed', ['amount']);
    }
    const body = { amount: 1, card_id: 'x' };
    expectError(await withdraw(holder, 0, { body }), 'validation_failed', ['card_id']);
    await expectNothing();
  });

  it('answers 402 insufficient_card_balance, of type payment, if the card is a cent short', async () => {
    const answer = await withdraw(holder, 1_001);
    expectError(answer, 'insufficient_card_balance');
    assert.deepEqual([answer.status, answer.json.error.type], [402, 'payment']);
    assert.match(answer.json.error.message, /needs 1001 cents, and the card has 1000 cents available/);
    await expectNothing();
  });

  it('leaves to authorizations what they hold', async () => {
    const { partner, cardId } = holder;
    const held = await partner.call('POST', `/test/cards/${cardId}/authorizations`, {
      body: { amount: 700 },
    });
    assert.equal(held.status, 201, held.text);
    expectError(await withdraw(holder, 301), 'insufficient_card_balance');
    const answer = await withdraw(holder, 300);
    assert.deepEqual([answer.status, answer.json.card_balance], [201, 700], answer.text);
    const card = await readCard(holder);
    assert.deepEqual([card.balance, card.available_balance], [700, 0]);
  });

  it('answers 404 for a card of another account or mode and for an unknown one, and the key stays unused', async () => {
    const other = await cardholder(stack, 'test', FUNDS);
    const idempotencyKey = 'k';
    for (const cardId of [other.cardId, newId('card'), 'card_1', 'x', "'", '%00']) {
      expectError(await withdraw({ ...holder, cardId }, 500, { idempotencyKey }), 'card_not_found');
    }
    expectError(await withdraw({ ...holder, mode: 'live' }, 500, { idempotencyKey }), 'card_not_found');
    await expectNothing();
    const answer = await withdraw(holder, 500, { idempotencyKey });
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.get('idempotent-replayed'), null);
  });

  for (const status of ['funding_pending', 'blocked', 'failed']) {
    it(`answers 409 invalid_state for a card that is ${status}, before it looks at the balance`, async () => {
      const failureCode = status === 'failed' ? 'issuance_failed' : null;
      await asOwner(stack, 'UPDATE card SET status = $2, failure_code = $3 WHERE id = $1', [
        holder.cardId,
        status,
        failureCode,
      ]);
      const answer = await withdraw(holder, 1_000_000);
      expectError(answer, 'invalid_state');
      assert.match(answer.json.error.message, new RegExp(`^The card is ${status}\\. `));
      await expectNothing();
    });
  }

  it('answers a repeated request with the first response, also 402 and 409, and 422 for another body', async () => {
    const done = await withdraw(holder, 100, { idempotencyKey: 'done' });
    const short = await withdraw(holder, 2_000, { idempotencyKey: 'short' });
    expectError(short, 'insufficient_card_balance');
    for (const [idempotencyKey, amount, first] of [
      ['done', 100, done],
      ['short', 2_000, short],
    ] as const) {
      const again = await withdraw(holder, amount, { idempotencyKey });
      assert.deepEqual([again.status, again.text], [first.status, first.text]);
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      expectError(await withdraw(holder, amount + 1, { idempotencyKey }), 'idempotency_conflict');
    }
    assert.equal((await readCard(holder)).balance, 900);
  });

  it('lists withdrawals of a card newest first, page by page, and no other one’s', async () => {
    const other = await cardholder(stack, 'test', 0);
    await withdraw(other, 1);
    const made = [];
    for (const amount of [100, 200, 300]) made.unshift((await withdraw(holder, amount)).json);
    const first = await listWithdrawals(holder, '?limit=2');
    assert.deepEqual([first.data, first.has_more, first.next_cursor], [made.slice(0, 2), true, made[1].id]);
    const second = await listWithdrawals(holder, `?limit=2&starting_after=${made[1].id}`);
    assert.deepEqual([second.data, second.has_more], [made.slice(2), false]);
    const [foreign] = (await listWithdrawals(other)).data;
    const { partner, cardId } = holder;
    const path = `/cards/${cardId}/withdrawals?starting_after=${foreign.id}`;
    expectError(await partner.call('GET', path), 'validation_failed', ['starting_after']);
    expectError(await partner.call('GET', `/withdrawals/${foreign.id}`), 'withdrawal_not_found');
    for (const id of ['wdr_1', 'x', newId('wdr'), newId('topup')]) {
      expectError(await partner.call('GET', `/withdrawals/${id}`), 'withdrawal_not_found');
    }
    expectError(await partner.call('GET', `/cards/${newId('card')}/withdrawals`), 'card_not_found');
  });

  it('takes exactly what the card has when 20 come at once', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => withdraw(holder, 150)));
    const made = answers.filter(({ status }) => status === 201);
    assert.equal(made.length, 6);
    for (const answer of answers) {
      if (answer.status !== 201) expectError(answer, 'insufficient_card_balance');
    }
    const balances = made.map(({ json }) => json.card_balance).sort((a, b) => a - b);
    assert.deepEqual(balances, [100, 250, 400, 550, 700, 850]);
    assert.deepEqual(await balanceOf(holder.partner), [FUNDS + 900, 0, FUNDS + 900]);
  });
});
