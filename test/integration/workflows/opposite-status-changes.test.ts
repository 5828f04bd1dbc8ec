import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertOneOrder, cardIn, changeStatus, statusClaims, type Verb } from '../../support/card-status.ts';
import { eventTypes, readCardRow } from '../../support/cards.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../../support/money.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import {
  answerLost,
  startUnrulyStack,
  type UnrulyNetwork,
  unavailable,
} from '../../support/unruly-network.ts';

describe('simultaneous opposite status changes', function () {
  this.timeout(180_000);
  let stack: TestStack;
  let partner: TestPartner;
  let network: UnrulyNetwork;
  let cardId: string;
  before(async () => {
    ({ stack, network } = await startUnrulyStack(90_000));
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
    cardId = await cardIn(stack, partner, 'live', 'active');
  });
  after(() => stack.stop());

  async function changeAtOnce(verbs: readonly Verb[]): Promise<string[]> {
    const answers = await Promise.all(
      verbs.map((verb) => changeStatus(partner, cardId, verb, { mode: 'live' })),
    );
    const order = await assertOneOrder(stack, cardId, answers);
    assert.equal((await statusClaims(stack, cardId)).length, verbs.length);
    await assertLedgerClean(stack);
    return order;
  }

  it('come to one order for 15 freezes and 15 unfreezes with a faulty network', async () => {
    let count = 0;
    network.usual = async (ask) => {
      count += 1;
      await sleep(20);
      if (count % 7 === 3) return answerLost(ask);
      return count % 7 === 5 ? unavailable(ask) : ask();
    };
    const verbs = Array.from({ length: 30 }, (_, index): Verb => (index % 2 === 0 ? 'freeze' : 'unfreeze'));
    const order = await changeAtOnce(verbs);
    assert.ok(order.length > 0);
    for (const [index, to] of order.entries()) assert.equal(to, index % 2 === 0 ? 'frozen' : 'active');
  });

  it('end blocked if blocks are among them, and the card’s money is released once', async () => {
    network.usual = (ask) => ask();
    const verbs = Array.from({ length: 10 }, () => ['freeze', 'block', 'unfreeze'] as const).flat();
    const order = await changeAtOnce(verbs);
    assert.deepEqual([order.indexOf('blocked'), order.at(-1)], [order.length - 1, 'blocked']);
    await assertBalance(stack, partner, 'live', { spentCents: priceOf(10_000) - 10_000, heldCents: 0 });
  });

  it('are judged one after the other in test mode as well', async () => {
    const testCard = await cardIn(stack, partner, 'test', 'active');
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        changeStatus(partner, testCard, index % 2 === 0 ? 'freeze' : 'unfreeze'),
      ),
    );
    const made = answers.filter(({ status }) => status === 200);
    assert.ok(answers.every(({ status, json }) => status === 200 || json.error.code === 'invalid_state'));
    const events = (await eventTypes(stack, testCard)).slice(1);
    assert.equal(events.length, made.length);
    assert.equal(events.filter((type) => type === 'card.frozen').length, Math.ceil(events.length / 2));
    const status = events.length % 2 === 0 ? 'active' : 'frozen';
    assert.equal((await readCardRow(stack, testCard))?.status, status);
  });
});
