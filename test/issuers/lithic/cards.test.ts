import assert from 'node:assert/strict';
import type { FakeLithic } from '../../../dev/lithic/fake-lithic.ts';
import type { Fault } from '../../../dev/lithic/faults.ts';
import { lithicCard, startLithicStack } from '../../support/adapters/lithic.ts';
import { moveRevealsBack, reveal, revealingPartner } from '../../support/api/reveals.ts';
import { createCard, settledCard } from '../../support/cards.ts';
import { assertLedgerClean } from '../../support/money.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { assertKeptNowhere } from '../../support/stored-data.ts';

const live = { mode: 'live' } as const;

describe('live cards at Lithic', () => {
  let fake: FakeLithic;
  let stack: TestStack;
  let stop: () => Promise<void>;
  let partner: TestPartner;
  before(async () => {
    ({ fake, stack, stop } = await startLithicStack({ logLevel: 'trace' }));
    partner = await revealingPartner(stack);
  });
  beforeEach(() => fake.faults.clear());
  after(async () => {
    await assertLedgerClean(stack);
    await stop();
  });

  const issue = (amount = 1_000) => createCard(partner, { amount }, live);
  const cardsFor = (cardId: string) =>
    [...fake.program.cards.values()].filter(({ memo }) => memo === cardId).length;
  const post = (path: string, body: object | undefined = undefined, idempotencyKey = path) =>
    partner.call('POST', path, { ...live, body, idempotencyKey });

  it('are issued, with their last four digits', async () => {
    const { status, json } = await issue();
    assert.deepEqual([status, json.status, json.balance], [201, 'active', 1_000]);
    const { last_four: last4 } = await lithicCard(fake, stack, json.id);
    assert.equal(json.last4, last4);
    assert.equal(cardsFor(json.id), 1);
  });

  for (const fault of ['lost before', 'lost after', '500 after', 'malformed', 'rate limited'] as Fault[]) {
    it(`are issued once each after "${fault}"`, async () => {
      fake.faults.add({ fault, request: 'POST /v1/cards', times: 1 });
      const { json } = await issue();
      const card = await settledCard(partner, json.id);
      assert.equal(card.status, 'active');
      assert.equal(cardsFor(card.id), 1);
    });
  }

  it('show their details to the partner, and leave neither number nor CVV anywhere, whatever fails', async () => {
    const cardIds = [];
    for (const fault of [null, 'other shape', '500 after', 'malformed'] as const) {
      if (fault !== null) fake.faults.add({ fault, request: 'POST /v1/cards', times: 1 });
      const card = await settledCard(partner, (await issue()).json.id);
      if (fault !== null) fake.faults.add({ fault, request: 'PATCH', times: 1 });
      assert.equal((await post(`/cards/${card.id}/freeze`)).status, 200);
      if (fault !== null) {
        fake.faults.add({ fault, request: 'GET /v1/cards', times: 1 });
        assert.equal((await reveal(partner, card.id, 'live')).status, 503);
      }
      cardIds.push(card.id);
    }
    const revealed = [];
    for (const cardId of cardIds) {
      const { pan, cvv } = await lithicCard(fake, stack, cardId);
      await moveRevealsBack(stack, partner, 90_000);
      const { status, json } = await reveal(partner, cardId, 'live');
      assert.deepEqual([status, json.pan, json.cvv], [200, pan, cvv]);
      revealed.push({ pan, cvv });
    }
    await assertKeptNowhere(stack, revealed);
  });
});
