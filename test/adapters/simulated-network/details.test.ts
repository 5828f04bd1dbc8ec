import assert from 'node:assert/strict';
import { CardNetworkUnavailable } from '../../../adapters/card-network/card-network.ts';
import { passesLuhn } from '../support/luhn.ts';
import { issuedCard, statusChange } from '../support/operations.ts';
import { startTestNetwork, type TestNetwork } from '../support/simulated-network.ts';

describe('the details of a card at the simulated network', () => {
  let test: TestNetwork;
  before(async () => {
    test = await startTestNetwork();
  });
  after(() => test.close());

  it('are those of the card that was issued, the same from every host and in every status', async () => {
    const card = await issuedCard(test.network);
    const asked = { cardId: card.cardId, networkCardId: card.networkCardId };
    const details = await test.network.revealCard(asked);
    assert.match(details.pan, /^[0-9]{16}$/);
    assert.ok(details.pan.startsWith(card.bin));
    assert.ok(passesLuhn(details.pan));
    assert.match(details.cvv, /^[0-9]{3}$/);
    assert.deepEqual(
      [details.pan.slice(-4), details.expMonth, details.expYear],
      [card.last4, card.expMonth, card.expYear],
    );
    const second = await test.host();
    for (const status of ['frozen', 'blocked'] as const) {
      await test.network.changeCardStatus(statusChange(card.networkCardId, status));
      assert.deepEqual(await second.network.revealCard(asked), details);
    }
  });

  it('are not there for a card the network does not know', async () => {
    for (const networkCardId of ['sim_unknown', 'sim_a/b', 'a b', 'x'.repeat(101), '..']) {
      await assert.rejects(
        test.network.revealCard({ cardId: 'card_1', networkCardId }),
        (error) => error instanceof CardNetworkUnavailable && /answered 404; it knows no/.test(error.message),
      );
    }
  });

  it('log none of this', () => assert.deepEqual(test.logged, []));
});
