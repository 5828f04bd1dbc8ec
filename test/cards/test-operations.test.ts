import assert from 'node:assert/strict';
import { CardStatus } from '../../domain/card-status.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { expectError } from '../support/api/answers.ts';
import { setCardStatus } from '../support/money.ts';
import {
  ask,
  assertMoney,
  assertNothing,
  assertOneEvent,
  assertShown,
  cardMoney,
  ISSUANCE,
  listed,
  OPERATION_KINDS,
  operating,
  read,
  TOP_UP,
  WITHDRAWAL,
} from '../support/operation-kinds.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';

/** The largest amount that what there is covers with its fees, and how much there is of the balance. */
const ENOUGH = {
  cards: { amount: 9_706, fundsCents: 10_000 },
  topups: { amount: 9_804, fundsCents: 10_000 },
  withdrawals: { amount: 10_000, fundsCents: 5_000 },
};

describe('in test mode', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack('api');
  });
  after(async () => {
    assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
  });

  for (const kind of OPERATION_KINDS) {
    describe(`POST …/${kind.collection}`, () => {
      it('answers 201 with what has been done, moves every cent at once, and writes one event', async () => {
        const on = await operating(stack, kind, 'test');
        const answer = await ask(on, 5_000);
        assert.equal(answer.status, 201, answer.text);
        await assertShown(on, answer.json, 5_000, 'succeeded');
        await assertOneEvent(on, answer.json, 'succeeded');
        assert.deepEqual(await read(on, answer.json.id), answer.json);
        assert.deepEqual(await listed(on), [answer.json]);
      });

      it('answers 402 if a cent is missing, with nothing made or told, and takes the last one', async () => {
        const { amount, fundsCents } = ENOUGH[kind.collection];
        const on = await operating(stack, kind, 'test', fundsCents);
        const refused = await ask(on, amount + 1);
        expectError(refused, kind.short);
        assert.deepEqual([refused.status, refused.json.error.type], [402, 'payment']);
        if (kind !== WITHDRAWAL) {
          const costs = -kind.change(amount + 1).balanceCents;
          assert.match(
            refused.json.error.message,
            new RegExp(
              `^This costs ${costs} cents with its fees, and ${fundsCents} cents are available, so nothing was debited\\. ` +
                'Fund the balance, then send the request with a new Idempotency-Key:',
            ),
          );
        }
        await assertNothing(on);
        const answer = await ask(on, amount);
        await assertShown(on, answer.json, amount, 'succeeded');
      });
    });
  }

  for (const [kind, statuses] of [
    [TOP_UP, CardStatus.options.filter((status) => status !== 'active')],
    [WITHDRAWAL, ['funding_pending', 'blocked', 'failed']],
  ] as const) {
    for (const status of statuses) {
      it(`refuses ${kind.name} with 409 if the card is ${status}, before it looks at amount and money`, async () => {
        const on = await operating(stack, kind, 'test');
        const failureCode = status === 'failed' ? 'issuance_failed' : null;
        await setCardStatus(stack, on.partner.id, status, { failureCode });
        for (const amount of [500, 99, 1_000_000]) {
          const answer = await ask(on, amount);
          expectError(answer, 'invalid_state');
          assert.match(answer.json.error.message, new RegExp(`^The card is ${status}\\. `));
        }
        await assertNothing(on);
      });
    }
  }

  it('looks at the limits of an account before its balance', async () => {
    for (const kind of [ISSUANCE, TOP_UP]) {
      const poor = await operating(stack, kind, 'test', 0);
      expectError(await ask(poor, 99), 'limit_exceeded');
      expectError(await ask(poor, 100), 'insufficient_funds');
    }
  });

  describe('a withdrawal', () => {
    it('takes the last cent off a frozen card', async () => {
      const on = await operating(stack, WITHDRAWAL, 'test');
      await setCardStatus(stack, on.partner.id, 'frozen');
      assert.equal((await ask(on, 10_000)).status, 201);
      await assertMoney(on, 'succeeded', 10_000);
      for (const amount of [1, Number.MAX_SAFE_INTEGER])
        expectError(await ask(on, amount), 'insufficient_card_balance');
    });

    it('counts towards no limit and gives nothing back of what was counted', async () => {
      const on = await operating(stack, WITHDRAWAL, 'test');
      const usage = () =>
        asOwner(
          stack,
          `SELECT loaded_cents, open_cards FROM account_usage WHERE partner_id = $1 AND mode = 'test'`,
          [on.partner.id],
        );
      const before = await usage();
      assert.equal((await ask(on, 1)).status, 201);
      assert.deepEqual(await usage(), before);
    });

    it('leaves to authorizations what they hold', async () => {
      const on = await operating(stack, WITHDRAWAL, 'test');
      const path = `/test/cards/${on.cardId}/authorizations`;
      assert.equal((await on.partner.call('POST', path, { body: { amount: 9_700 } })).status, 201);
      const short = await ask(on, 301);
      expectError(short, 'insufficient_card_balance');
      assert.match(short.json.error.message, /needs 301 cents, and the card has 300 cents available/);
      const answer = await ask(on, 300);
      assert.deepEqual([answer.status, answer.json.card_balance], [201, 9_700], answer.text);
      assert.deepEqual(await cardMoney(on), [9_700, 0]);
    });
  });
});
