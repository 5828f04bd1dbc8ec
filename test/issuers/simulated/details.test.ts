import assert from 'node:assert/strict';
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { CardNetworkUnavailable } from '../../../issuers/card-network.ts';
import { issuedCard } from '../../support/adapters/network-requests.ts';
import { startTestNetwork, type TestNetwork } from '../../support/adapters/simulated-network.ts';

describe('the card details at the simulated network', () => {
  let test: TestNetwork;
  before(async () => {
    test = await startTestNetwork();
  });
  after(() => test.close());

  it("stay the same when the key is rotated, as long as the card's own key is kept", async () => {
    const old = await issuedCard(test.network);
    const asked = { cardId: old.cardId, networkCardId: old.networkCardId };
    const details = await test.network.revealCard(asked);
    const rotated = createSecretKey(randomBytes(32));
    const both = await test.host([rotated, test.secret]);
    assert.deepEqual(await both.network.revealCard(asked), details);
    const young = await issuedCard(both.network);
    const secrets: [KeyObject, ...KeyObject[]] = [rotated];
    const newAlone = await test.host(secrets);
    const { last4 } = young;
    const shown = await newAlone.network.revealCard({
      cardId: young.cardId,
      networkCardId: young.networkCardId,
    });
    assert.equal(shown.pan.slice(-4), last4);
    await assert.rejects(newAlone.network.revealCard(asked), /answered 500/);
    assert.match(test.logged.pop() ?? '', /key this card was issued under is not in ENCRYPTION_KEYS/);
    // As in a process that reads what is kept of former keys only when PostgreSQL is back.
    secrets.push(test.secret);
    assert.deepEqual(await newAlone.network.revealCard(asked), details);
  });

  it('do not exist for a card that the network does not know', async () => {
    for (const networkCardId of ['sim_unknown', 'sim_a/b', 'a b', 'x'.repeat(101), '..']) {
      await assert.rejects(
        test.network.revealCard({ cardId: 'card_1', networkCardId }),
        (error) => error instanceof CardNetworkUnavailable && /answered 404; it knows no/.test(error.message),
      );
    }
  });

  it('never appear in the log', () => assert.deepEqual(test.logged, []));
});
