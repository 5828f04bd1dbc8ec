import assert from 'node:assert/strict';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const DECLINED = 1_042;
const ISSUED = 1_000;

describe('PATCH /cards/{cardId} while POST /cards waits for the card network', () => {
  let stack: TestStack;
  let partner: TestPartner;
  /** The network answers nothing before this. */
  let gate: PromiseWithResolvers<void>;
  before(async () => {
    stack = await startTestStack({ cardCreationWaitMs: 60_000 }, { worker: false });
    await stack.startWorker({
      around: {
        activities: (same) => same,
        network: (network) => ({
          ...network,
          async issueCard(request) {
            await gate.promise;
            return network.issueCard(request);
          },
        }),
      },
    });
  });
  beforeEach(async () => {
    gate = Promise.withResolvers();
    partner = await fundedPartner(stack);
  });
  after(async () => {
    gate.resolve();
    await assertLedgerClean(stack);
    await stack.stop();
  });

  const live = { mode: 'live' } as const;
  const eventTypes = async () => {
    const { json } = await partner.call('GET', '/events', live);
    return json.data.map(({ type }: { type: string }) => type).toReversed();
  };

  /** Creates a card, and changes it while the network says nothing. @returns both responses */
  async function changeWhilePending(amount: number) {
    const creating = createCard(partner, { amount, metadata: { order: '1' } }, live);
    const card = await until('the card is pending', async () => {
      const { json } = await partner.call('GET', '/cards?status=funding_pending', live);
      return json.data[0];
    });
    const body = { card_name: 'Ads', metadata: { order: '2' } };
    const changed = await partner.call('PATCH', `/cards/${card.id}`, { ...live, body });
    assert.deepEqual([changed.status, changed.json], [200, { ...card, ...body }], changed.text);
    assert.deepEqual(await eventTypes(), []);
    gate.resolve();
    return { changed, created: await creating };
  }

  it('leaves no card and no event behind if the network declines', async () => {
    const { changed, created } = await changeWhilePending(DECLINED);
    assert.deepEqual([created.status, created.json.error.code], [402, 'provider_declined']);
    assert.deepEqual(await eventTypes(), []);
    assert.equal((await partner.call('GET', `/cards/${changed.json.id}`, live)).status, 404);
  });

  it('is announced after the card if the network issues it', async () => {
    const { changed, created } = await changeWhilePending(ISSUED);
    assert.equal(created.status, 201, created.text);
    const { card_name, metadata } = created.json;
    assert.deepEqual([card_name, metadata], ['Ads', { order: '2' }]);
    assert.equal(created.json.id, changed.json.id);
    assert.deepEqual(await eventTypes(), ['card.updated', 'card.issued']);
  });
});
