import assert from 'node:assert/strict';
import { creditPayments } from '../../deposits/credit-payments.ts';
import { seedDeposit } from '../support/deposits/seed-deposits.ts';
import { balanceOf } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

const NETWORK_TIME = new Date('2026-11-20T08:00:00.000Z');

describe('a deposit with a payment', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack('api');
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
  });

  const get = async (path: string, mode: 'test' | 'live' = 'live') => {
    const { status, json, text } = await partner.call('GET', path, { mode });
    assert.equal(status, 200, text);
    return json;
  };
  async function paid(valueMicroUsdt: bigint): Promise<string> {
    const payment = { valueMicroUsdt, status: 'found', blockNumber: 100, blockTime: NETWORK_TIME } as const;
    const id = await seedDeposit(stack, partner.id, { amountCents: 2_500, payments: [payment] });
    assert.deepEqual(await creditPayments(stack.orm, [id]), {
      judged: 1,
      credited: valueMicroUsdt === 25_000_000n ? 1 : 0,
    });
    return id;
  }

  it('appears in the balance, its history and an event, each with its id, in live mode alone', async () => {
    const id = await paid(25_000_000n);
    const deposit = await get(`/funding/deposits/${id}`);
    assert.deepEqual(
      [deposit.status, deposit.received_amount, deposit.credited_amount, deposit.payments.length],
      ['confirmed', 2_500, 2_500, 1],
    );
    assert.deepEqual(await balanceOf(partner, 'live'), [2_500, 0, 2_500]);

    assert.equal(deposit.payments[0].status, 'credited');

    const { data: changes } = await get('/balance/transactions');
    const [{ id: changeId, created, ...change }] = changes;
    assert.deepEqual(
      [changes.length, change],
      [
        1,
        {
          ...{
            object: 'balance_transaction',
            type: 'deposit',
            amount: 2_500,
            balance_after: 2_500,
            mode: 'live',
          },
          source: { type: 'deposit', id },
        },
      ],
    );
    assert.match(`${changeId} ${created}`, /^btx_\w+ \d{4}-/);

    const { data: events } = await get('/events?type=deposit.confirmed');
    const [event] = events;
    assert.deepEqual([events.length, event.type, event.mode], [1, 'deposit.confirmed', 'live']);
    // The event has the deposit as it is read and nothing else, since it is about no card.
    assert.deepEqual(event.data, { deposit });
    assert.deepEqual((await get(`/events/${event.id}`)).data, { deposit });

    assert.deepEqual(await balanceOf(partner, 'test'), [0, 0, 0]);
    for (const path of ['/events', '/balance/transactions', '/funding/deposits'])
      assert.deepEqual((await get(path, 'test')).data, [], path);
  });

  it('waits for review if the amount differs, without a credit and with an event', async () => {
    const id = await paid(25_000_001n);
    const deposit = await get(`/funding/deposits/${id}`);
    assert.deepEqual(
      [deposit.status, deposit.received_amount, deposit.payments[0].amount_usdt, deposit.confirmed_at],
      ['needs_review', 2_500, '25.000001', null],
    );
    assert.deepEqual(await balanceOf(partner, 'live'), [0, 0, 0]);
    assert.deepEqual([deposit.credited_amount, deposit.payments[0].status], [0, 'in_review']);
    const { data: events } = await get('/events');
    assert.deepEqual(
      events.map(({ type, data }: { type: string; data: object }) => [type, data]),
      [['deposit.needs_review', { deposit }]],
    );
    assert.deepEqual((await get('/balance/transactions')).data, []);
  });
});
