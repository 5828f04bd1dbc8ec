import assert from 'node:assert/strict';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { expectError } from '../support/api/answers.ts';
import { changeStatus } from '../support/card-status.ts';
import { balanceOf } from '../support/money.ts';
import {
  ask,
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
  settled,
  TOP_UP,
  WITHDRAWAL,
} from '../support/operation-kinds.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const SUCCEEDING = [
  [1_000, 201, 'with any other ending'],
  [5_044, 201, 'ending in 44, whose answer is lost and which is found by asking again'],
  [5_048, 201, 'ending in 48, which succeeds after three 503s'],
  [5_041, 202, 'ending in 41, which the network completes about 2 s later'],
  [5_045, 202, 'ending in 45, whose callback never comes and whose outcome polling finds'],
  [5_046, 202, 'ending in 46, whose callback comes twice'],
] as const;

describe('in live mode', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack();
  });
  after(async () => {
    assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
  });

  for (const kind of OPERATION_KINDS) {
    describe(`POST …/${kind.collection}`, () => {
      let on: Operating;
      beforeEach(async () => {
        on = await operating(stack, kind, 'live');
      });

      for (const [amount, status, what] of SUCCEEDING) {
        it(`answers ${status} for an amount ${what}, and it succeeds once`, async () => {
          const answer = await ask(on, amount);
          assert.equal(answer.status, status, answer.text);
          if (status === 202) {
            await assertShown(on, answer.json, amount, 'pending');
            assert.deepEqual(await eventsAbout(on), []);
          }
          const now = await settled(on, answer.json.id);
          if (status === 201) assert.deepEqual(now, answer.json);
          await until('no callback is to come', async () => {
            const left = 'SELECT FROM simulated_network.callback WHERE token = $1';
            return (await asOwner(stack, left, [now.id])).length === 0;
          });
          assert.equal(now.created, answer.json.created);
          await assertShown(on, now, amount, 'succeeded');
          await assertOneEvent(on, now, 'succeeded');
        });
      }

      it('answers 402 provider_declined for an amount ending in 42, with nothing made, told or held', async () => {
        expectError(await ask(on, 5_042), 'provider_declined');
        await assertNothing(on);
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

  for (const { what, kind, amount, onCard, ends, changes } of [
    {
      what: 'fails a pending top-up if the card is blocked meanwhile',
      ...{ kind: TOP_UP, amount: 5_047, onCard: 0 },
      ends: ['failed', 'card_blocked'],
      changes: [['card_release', 1_000]],
    },
    {
      what: 'lets a withdrawal stand if the card is blocked meanwhile and the network says yes',
      ...{ kind: WITHDRAWAL, amount: 5_041, onCard: 5_041 },
      ends: ['succeeded', null],
      changes: [
        ['card_withdrawal', 5_041],
        ['card_release', 4_959],
      ],
    },
    {
      what: 'gives the balance what a withdrawal held if the card is blocked meanwhile and the network says no',
      ...{ kind: WITHDRAWAL, amount: 5_043, onCard: 5_043 },
      ends: ['failed', 'withdrawal_failed'],
      changes: [
        ['card_release', 5_043],
        ['card_release', 4_957],
      ],
    },
  ] as const) {
    it(what, async () => {
      const on = await operating(stack, kind, 'live');
      const { json } = await ask(on, amount);
      const blocked = await changeStatus(on.partner, on.cardId, 'block', { mode: 'live' });
      // The block releases what is free; what is held stays on the card.
      const { balance, available_balance } = blocked.json;
      assert.deepEqual([blocked.status, balance, available_balance], [200, onCard, 0], blocked.text);
      const now = await settled(on, json.id);
      assert.deepEqual([now.status, now.failure_code, now.card_balance], [...ends, 0]);
      const total = FUNDS + kind.cardCents;
      assert.deepEqual(await balanceOf(on.partner, 'live'), [total, 0, total]);
      assert.deepEqual(await cardMoney(on), [0, 0]);
      assert.deepEqual(await balanceChanges(on, changes.length), changes);
      await assertOneEvent(on, now, ends[0]);
      expectError(await ask(on, 500), 'invalid_state');
    });
  }

  for (const kind of [TOP_UP, WITHDRAWAL]) {
    it(`answers 409 to ${kind.name} of a card whose id turned out to be another card's`, async () => {
      const on = await operating(stack, kind, 'live');
      await asOwner(stack, "UPDATE card SET network_card_id = 'unknown/' || id WHERE id = $1", [on.cardId]);
      const answer = await ask(on, 500);
      expectError(answer, 'invalid_state');
      assert.match(answer.json.error.message, /finding out from the card network which of its cards this is/);
      await assertNothing(on);
    });
  }

  it('loses and makes no cent when top-ups, withdrawals and a block come at once', async () => {
    const withdrawals = await operating(stack, WITHDRAWAL, 'live');
    const topUps = { ...withdrawals, kind: TOP_UP };
    const asked = [
      ...[1_000, 1_041, 1_043].map((amount) => ({ on: topUps, amount })),
      ...[1_500, 1_541, 1_543, 1_544, 1_500, 1_500, 1_500].map((amount) => ({ on: withdrawals, amount })),
    ];
    const answering = asked.map(async ({ on, amount }) => ({ on, answer: await ask(on, amount) }));
    const blocked = await changeStatus(withdrawals.partner, withdrawals.cardId, 'block', { mode: 'live' });
    assert.equal(blocked.status, 200, blocked.text);
    let feeCents = 0;
    for (const { on, answer } of await Promise.all(answering)) {
      assert.ok([201, 202, 402, 409].includes(answer.status), answer.text);
      if (answer.status >= 400) continue;
      const { status, fees = [] } = await settled(on, answer.json.id);
      if (status === 'succeeded') feeCents += fees[0]?.amount ?? 0;
    }
    assert.deepEqual(await cardMoney(withdrawals), [0, 0]);
    const total = FUNDS + WITHDRAWAL.cardCents - feeCents;
    assert.deepEqual(await balanceOf(withdrawals.partner, 'live'), [total, 0, total]);
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
