import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { newId } from '../../../crypto/new-id.ts';
import type { StatusChangeRequest } from '../../../domain/card-network.ts';
import { expectError } from '../../support/api/answers.ts';
import {
  cardIn,
  changeStatus,
  claimUnderWay,
  networkStatus,
  statusClaims,
  untilChangesAnswered,
} from '../../support/card-status.ts';
import { eventTypes, forgetNetworkCard, readCardRow } from '../../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import {
  answerLost,
  refused,
  startUnrulyStack,
  type UnrulyNetwork,
  unavailable,
} from '../../support/unruly-network.ts';
import { until } from '../../support/until.ts';

const FROZEN = ['card.issued', 'card.frozen'];

describe('a live status change', function () {
  this.timeout(120_000);
  let stack: TestStack;
  let partner: TestPartner;
  let network: UnrulyNetwork;
  let cardId: string;
  before(async () => {
    ({ stack, network } = await startUnrulyStack(30_000));
    partner = await fundedPartner(stack);
  });
  beforeEach(async () => {
    cardId = await cardIn(stack, partner, 'live', 'active');
    network.asked.length = 0;
  });
  afterEach(() => {
    assert.equal(network.next.length, 0, 'the network was not asked as often as the test thought');
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  const change = (verb: 'freeze' | 'unfreeze' | 'block', idempotencyKey = randomUUID()) =>
    changeStatus(partner, cardId, verb, { mode: 'live', idempotencyKey });

  async function assertBoth(status: string, events: readonly string[]): Promise<void> {
    assert.equal((await readCardRow(stack, cardId))?.status, status);
    assert.equal(await networkStatus(stack, cardId), status);
    assert.deepEqual(await eventTypes(stack, cardId), events);
    assert.equal(await claimUnderWay(stack, cardId), null);
  }

  const tokens = () => new Set(network.asked.map(({ token }) => token)).size;

  it('is requested again with the same token if the network answers 503 at first', async () => {
    network.next.push(unavailable, unavailable, unavailable);
    const answer = await change('freeze');
    assert.equal(answer.status, 200, answer.text);
    await assertBoth('frozen', FROZEN);
    assert.deepEqual([network.asked.length, tokens()], [4, 1]);
  });

  it('is made once if the network acts but its answer is lost, again and again', async () => {
    network.next.push(answerLost, answerLost, answerLost);
    const answer = await change('freeze');
    assert.equal(answer.status, 200, answer.text);
    await assertBoth('frozen', FROZEN);
    assert.deepEqual([network.asked.length, tokens()], [4, 1]);
  });

  it('ignores an answer that arrives after it was requested again', async () => {
    const late = Promise.withResolvers<void>();
    const heard = Promise.withResolvers<void>();
    network.next.push(async (ask) => {
      const answer = await ask();
      await late.promise;
      setTimeout(heard.resolve, 500);
      return answer;
    });
    const answer = await change('freeze');
    assert.equal(answer.status, 200, answer.text);
    assert.equal(network.asked.length, 2);
    assert.equal((await change('unfreeze')).status, 200);
    late.resolve();
    await heard.promise;
    await assertBoth('active', [...FROZEN, 'card.unfrozen']);
  });

  it('is not repeated if the network gets its request a second time, long after the opposite change', async () => {
    assert.equal((await change('freeze')).status, 200);
    const [freeze] = network.asked;
    assert.ok(freeze);
    assert.equal((await change('unfreeze')).status, 200);
    assert.deepEqual(await network.ask(freeze), { status: 'applied' });
    await assertBoth('active', [...FROZEN, 'card.unfrozen']);
  });

  it('is answered 409 with the unchanged status if the network refuses, also on a retry, and the next one is possible', async () => {
    network.next.push(refused);
    const key = randomUUID();
    const answer = await change('freeze', key);
    expectError(answer, 'invalid_state');
    assert.match(answer.json.error.message, /network refused.* The card is still active\.$/);
    await assertBoth('active', ['card.issued']);
    assert.equal((await change('freeze', key)).text, answer.text);
    assert.equal((await change('freeze')).status, 200);
    await assertBoth('frozen', FROZEN);
  });

  it('is answered 409 for an unfreeze if the network has blocked the card, and a block is possible', async () => {
    assert.equal((await change('freeze')).status, 200);
    await network.ask({
      ...network.asked[0],
      token: newId('claim'),
      cardStatus: 'blocked',
    } as StatusChangeRequest);
    expectError(await change('unfreeze'), 'invalid_state');
    assert.equal((await change('block')).status, 200);
    await assertBoth('blocked', [...FROZEN, 'card.blocked']);
  });

  it("is answered 409 without asking the network if the network's id of the card is missing", async () => {
    await forgetNetworkCard(stack, cardId);
    for (const verb of ['freeze', 'block'] as const) {
      const answer = await change(verb);
      expectError(answer, 'invalid_state');
      assert.match(
        answer.json.error.message,
        /^The card is active, .*do not have the card network's id for it/,
      );
    }
    assert.deepEqual(network.asked, []);
    assert.deepEqual(await eventTypes(stack, cardId), ['card.issued']);
  });
});

describe('a status change that outlasts its request', function () {
  this.timeout(120_000);
  let stack: TestStack;
  let partner: TestPartner;
  let network: UnrulyNetwork;
  let cardId: string;
  before(async () => {
    ({ stack, network } = await startUnrulyStack(700));
    partner = await fundedPartner(stack);
  });
  beforeEach(async () => {
    network.usual = (ask) => ask();
    cardId = await cardIn(stack, partner, 'live', 'active');
  });
  after(() => stack.stop());

  const freeze = (idempotencyKey: string) =>
    changeStatus(partner, cardId, 'freeze', { mode: 'live', idempotencyKey });

  it('is answered 503, continues, and is found by a retry with the same key', async () => {
    network.usual = unavailable;
    const key = randomUUID();
    for (let attempt = 0; attempt < 2; attempt++) {
      const pending = await freeze(key);
      expectError(pending, 'unavailable');
      assert.match(
        pending.json.error.message,
        /we are still waiting for it\. To learn the outcome, read the card, /,
      );
    }
    assert.equal((await readCardRow(stack, cardId))?.status, 'active');
    network.usual = (ask) => ask();
    await until('it is frozen', async () => (await readCardRow(stack, cardId))?.status === 'frozen');

    const answer = await freeze(key);
    assert.deepEqual([answer.status, answer.json.status], [200, 'frozen']);
    assert.equal((await statusClaims(stack, cardId)).length, 1);
    assert.deepEqual(await eventTypes(stack, cardId), FROZEN);
  });

  it('makes later changes wait, which are then judged by what they find', async () => {
    network.usual = unavailable;
    for (const verb of ['freeze', 'freeze', 'block'] as const) {
      const answer = await changeStatus(partner, cardId, verb, { mode: 'live' });
      expectError(answer, 'unavailable');
    }
    const [first] = await statusClaims(stack, cardId);
    assert.equal(await claimUnderWay(stack, cardId), first?.id);
    network.usual = (ask) => ask();
    const claims = await untilChangesAnswered(stack, cardId);
    const statuses = claims.map(({ response_status }) => response_status);
    assert.deepEqual([statuses[0], statuses[1], statuses[2]], [200, 409, 200]);
    assert.deepEqual(await eventTypes(stack, cardId), [...FROZEN, 'card.blocked']);
    assert.equal(await networkStatus(stack, cardId), 'blocked');
  });
});
