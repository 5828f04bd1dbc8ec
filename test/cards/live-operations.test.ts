import assert from 'node:assert/strict';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { expectError } from '../support/api/answers.ts';
import { changeStatus } from '../support/card-status.ts';
import { forgetNetworkCard } from '../support/cards.ts';
import { balanceOf } from '../support/money.ts';
import {
  ask,
  assertMoney,
  assertNothing,
  assertOneEvent,
  assertShown,
  cardMoney,
  eventsAbout,
  FUNDS,
  ISSUANCE,
  listed,
  OPERATION_KINDS,
  type Operating,
  operating,
  read,
  settled,
  TOP_UP,
  WITHDRAWAL,
} from '../support/operation-kinds.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const AT_ONCE = {
  1000: 'any other ending',
  5044: '44, whose answer is lost and which is found by asking again',
  5048: '48, which succeeds after three 503s',
};
const LATER = {
  5041: '41, which the network completes about 2 s later',
  5045: '45, whose callback never comes and whose outcome polling finds',
  5046: '46, whose callback comes twice',
};

describe('in live mode', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack();
  });

  for (const kind of OPERATION_KINDS) {
    describe(`POST …/${kind.collection}`, () => {
      let on: Operating;
      beforeEach(async () => {
        on = await operating(stack, kind, 'live');
      });

      for (const [amount, what] of Object.entries(AT_ONCE)) {
        it(`answers 201 for an amount ${what}`, async () => {
          const answer = await ask(on, Number(amount));
          assert.equal(answer.status, 201, answer.text);
          await assertShown(on, answer.json, Number(amount), 'succeeded');
          await assertOneEvent(on, answer.json, 'succeeded');
          assert.deepEqual(await read(on, answer.json.id), answer.json);
        });
      }

      for (const [amount, what] of Object.entries(LATER)) {
        it(`answers 202 for an amount ending in ${what}, and it succeeds once`, async () => {
          const answer = await ask(on, Number(amount));
          assert.equal(answer.status, 202, answer.text);
          await assertShown(on, answer.json, Number(amount), 'pending');
          assert.deepEqual(await eventsAbout(on), []);
          const now = await settled(on, answer.json.id);
          await until('no callback is to come', async () => {
            const left = 'SELECT FROM simulated_network.callback WHERE token = $1';
            return (await asOwner(stack, left, [now.id])).length === 0;
          });
          assert.deepEqual([now.id, now.created], [answer.json.id, answer.json.created]);
          await assertShown(on, now, Number(amount), 'succeeded');
          await assertOneEvent(on, now, 'succeeded');
        });
      }

      it('answers 402 provider_declined for an amount ending in 42, with nothing made, told or held', async () => {
        expectError(await ask(on, 5_042), 'provider_declined');
        await assertNothing(on);
        const rows = await asOwner(stack, `SELECT FROM ${kind.object} WHERE partner_id = $1`, [
          on.partner.id,
        ]);
        assert.deepEqual(rows, []);
        assert.equal((await ask(on, 5_000)).status, 201, 'what it named is free');
      });

      it('answers 202 for an amount ending in 43, and it fails and frees every held cent', async () => {
        const answer = await ask(on, 5_043);
        assert.equal(answer.status, 202, answer.text);
        const now = await settled(on, answer.json.id);
        await assertShown(on, now, 5_043, 'failed');
        await assertOneEvent(on, now, 'failed');
        const again = await ask(on, 5_000);
        assert.deepEqual([again.status, again.json.id === now.id], [201, false], again.text);
      });

      it('answers 202 for an amount ending in 47, which stays pending with its money held', async () => {
        const answer = await ask(on, 5_047);
        assert.equal(answer.status, 202, answer.text);
        await assertShown(on, answer.json, 5_047, 'pending');
        assert.deepEqual(await listed(on), [answer.json]);
        assert.deepEqual(await eventsAbout(on), []);
        // What is held can't be spent once more.
        const amount = kind === WITHDRAWAL ? kind.cardCents - 5_047 + 1 : 93_000;
        const another = { ...kind.body, amount, ...(kind === ISSUANCE && { external_ref: 'another' }) };
        expectError(await ask(on, amount, { body: another }), kind.short);
      });
    });
  }

  it('shows the card’s balance of now while an operation is pending, and that of its end afterwards', async () => {
    const topUps = await operating(stack, TOP_UP, 'live');
    const withdrawals = { ...topUps, kind: WITHDRAWAL };
    const balances = async (on: Operating) =>
      (await listed(on)).map(({ status, card_balance }: Record<string, unknown>) => [status, card_balance]);
    await ask(topUps, 5_047);
    assert.equal((await ask(topUps, 1_000)).status, 201);
    assert.equal((await ask(withdrawals, 547)).status, 202);
    assert.equal((await ask(withdrawals, 100)).status, 201);
    assert.equal((await ask(topUps, 2_000)).status, 201);
    assert.deepEqual(await balances(topUps), [
      ['succeeded', 3_900],
      ['succeeded', 2_000],
      ['pending', 3_900],
    ]);
    assert.deepEqual(await balances(withdrawals), [
      ['succeeded', 1_900],
      ['pending', 3_900],
    ]);
  });

  const balanceChanges = async ({ partner }: Operating, limit: number): Promise<[string, number][]> => {
    const { json } = await partner.call('GET', `/balance/transactions?limit=${limit}`, { mode: 'live' });
    return json.data.map(({ type, amount }: { type: string; amount: number }) => [type, amount]);
  };

  describe('if the card is blocked meanwhile', () => {
    for (const [what, kind, amount, onCard, status, failureCode, changes] of [
      ['a pending top-up fails', TOP_UP, 5_047, 0, 'failed', 'card_blocked', [['card_release', 1_000]]],
      [
        'a withdrawal stands if the network says yes',
        WITHDRAWAL,
        5_041,
        5_041,
        'succeeded',
        null,
        [
          ['card_withdrawal', 5_041],
          ['card_release', 4_959],
        ],
      ],
      [
        'a withdrawal fails if the network says no, and its money goes to the balance',
        WITHDRAWAL,
        5_043,
        5_043,
        'failed',
        'withdrawal_failed',
        [
          ['card_release', 5_043],
          ['card_release', 4_957],
        ],
      ],
    ] as const) {
      it(what, async () => {
        const on = await operating(stack, kind, 'live');
        const { json } = await ask(on, amount);
        const blocked = await changeStatus(on.partner, on.cardId, 'block', { mode: 'live' });
        // The block releases what is free; what is held stays on the card.
        assert.deepEqual(
          [blocked.status, blocked.json.balance, blocked.json.available_balance],
          [200, onCard, 0],
          blocked.text,
        );
        const now = await settled(on, json.id);
        assert.deepEqual([now.status, now.failure_code, now.card_balance], [status, failureCode, 0]);
        const total = FUNDS + kind.cardCents;
        assert.deepEqual(await balanceOf(on.partner, 'live'), [total, 0, total]);
        assert.deepEqual(await cardMoney(on), [0, 0]);
        assert.deepEqual(await balanceChanges(on, changes.length), changes);
        await assertOneEvent(on, now, status);
        expectError(await ask(on, 500), 'invalid_state');
      });
    }
  });

  it('asks the network for no withdrawal that the card can not pay', async () => {
    const on = await operating(stack, WITHDRAWAL, 'live');
    const answer = await ask(on, on.kind.cardCents + 1);
    expectError(answer, 'insufficient_card_balance');
    assert.match(answer.json.error.message, new RegExp(`the card has ${on.kind.cardCents} cents available`));
    await assertNothing(on);
    const asked = await asOwner(
      stack,
      `SELECT FROM simulated_network.operation WHERE kind = 'card.withdrawal'
         AND request ->> 'networkCardId' = (SELECT network_card_id FROM card WHERE id = $1)`,
      [on.cardId],
    );
    assert.deepEqual(asked, []);
  });

  it('takes money off a frozen card, as a balance transaction of the withdrawal', async () => {
    const on = await operating(stack, WITHDRAWAL, 'live');
    await changeStatus(on.partner, on.cardId, 'freeze', { mode: 'live' });
    assert.equal((await ask(on, 1_000)).status, 201);
    await assertMoney(on, 'succeeded', 1_000);
    assert.deepEqual(await balanceChanges(on, 1), [['card_withdrawal', 1_000]]);
  });

  for (const [kind, says] of [
    [TOP_UP, /^The card is active, but we do not have the card network's id for it/],
    [WITHDRAWAL, /^We do not have the card network's id for this card/],
  ] as const) {
    it(`answers 409 to ${kind.name} of a card whose id the network has not given`, async () => {
      const on = await operating(stack, kind, 'live');
      await forgetNetworkCard(stack, on.cardId);
      const answer = await ask(on, 500);
      expectError(answer, 'invalid_state');
      assert.match(answer.json.error.message, says);
      await assertNothing(on);
    });
  }

  it('loses and makes no cent when top-ups, withdrawals and a block come at once', async () => {
    const withdrawals = await operating(stack, WITHDRAWAL, 'live');
    const topUps = { ...withdrawals, kind: TOP_UP };
    const [toppedUp, withdrawn, blocked] = await Promise.all([
      Promise.all([1_000, 1_041, 1_043].map((amount) => ask(topUps, amount))),
      Promise.all(
        [1_500, 1_541, 1_543, 1_544, 1_500, 1_500, 1_500].map((amount) => ask(withdrawals, amount)),
      ),
      changeStatus(withdrawals.partner, withdrawals.cardId, 'block', { mode: 'live' }),
    ]);
    assert.equal(blocked.status, 200, blocked.text);
    for (const { status, text } of [...toppedUp, ...withdrawn]) {
      assert.ok([201, 202, 402, 409].includes(status), text);
    }
    for (const [on, answers] of [
      [topUps, toppedUp],
      [withdrawals, withdrawn],
    ] as const) {
      for (const { status, json } of answers) if (status < 400) await settled(on, json.id);
    }
    const succeeded = (await listed(topUps)).filter(
      ({ status }: { status: string }) => status === 'succeeded',
    );
    const feeCents = succeeded.reduce(
      (sum: number, one: { fees: { amount: number }[] }) => sum + (one.fees[0]?.amount ?? 0),
      0,
    );
    assert.deepEqual(await cardMoney(withdrawals), [0, 0]);
    const total = FUNDS + WITHDRAWAL.cardCents - feeCents;
    assert.deepEqual(await balanceOf(withdrawals.partner, 'live'), [total, 0, total]);
  });

  it('leaves a ledger that adds up', async () => {
    assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
  });
});

describe('in test mode', () => {
  for (const kind of OPERATION_KINDS) {
    it(`the ending of an amount means nothing for ${kind.name}`, async () => {
      const on = await operating(await sharedStack(), kind, 'test');
      for (let amount = 541; amount <= 548; amount++) {
        const body = { ...kind.body, external_ref: `${amount}`, amount };
        const answer = await ask(on, amount, kind === ISSUANCE ? { body } : {});
        assert.deepEqual([answer.status, answer.json.status], [201, kind.statuses.succeeded], answer.text);
      }
    });
  }
});
