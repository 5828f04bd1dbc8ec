import assert from 'node:assert/strict';
import { newId } from '../../../../crypto/new-id.ts';
import { type CardNetwork, CardNetworkUnavailable } from '../../../../domain/card-network.ts';

/** A network's client, and the fake that it speaks to over HTTP. */
export interface NetworkUnderTest {
  network: CardNetwork;
  /** How many usable cards the network has for an id of ours. */
  cardsOf(token: string): Promise<number>;
  /** How much it has moved to or from the card; null if it holds no cards' money. */
  movedTo(networkCardId: string): Promise<number | null>;
  /** The next request that acts is carried out, and its answer is lost. @returns the amount to ask for */
  loseNextAnswer(): number;
  /** The next request that acts is refused for good. @returns the amount to ask for */
  refuseNext(): number;
  stop(): Promise<void>;
}

/** What every card network has to keep of `CardNetwork`, whatever it says on the wire. Describes a block of tests. */
export function describeConformance(name: string, start: () => Promise<NetworkUnderTest>): void {
  describe(`${name}, as every card network,`, () => {
    let one: NetworkUnderTest;
    beforeEach(async () => {
      one = await start();
    });
    afterEach(() => one.stop());

    const order = (token: string = newId('card')) => ({
      token,
      productCode: 'TEST-USD',
      bin: '424242',
      amountCents: 5_000,
      cardholderName: null,
    });
    const issue = async () => {
      const issued = await one.network.issueCard(order());
      assert.equal(issued.status, 'issued');
      return issued.status === 'issued' ? issued : assert.fail();
    };

    it('issues one card for a token, however often and at once it is asked', async () => {
      const asked = order();
      const first = await one.network.issueCard(asked);
      const again = await Promise.all(Array.from({ length: 5 }, () => one.network.issueCard(asked)));
      for (const answer of again) assert.deepEqual(answer, first);
      assert.deepEqual(await one.network.lookUpIssuance(asked.token), first);
      assert.equal(await one.cardsOf(asked.token), 1);
    });

    it('knows no token that it was never asked with', async () => {
      assert.deepEqual(await one.network.lookUpIssuance(newId('card')), { status: 'unknown' });
    });

    it('says that it is unavailable if an answer is lost, and then finds what it has made', async () => {
      const asked = { ...order(), amountCents: one.loseNextAnswer() };
      await assert.rejects(one.network.issueCard(asked), CardNetworkUnavailable);
      const again = await one.network.issueCard(asked);
      assert.equal(again.status, 'issued');
      assert.deepEqual(await one.network.lookUpIssuance(asked.token), again);
      assert.equal(await one.cardsOf(asked.token), 1);
    });

    it('leaves no usable card behind if it declines', async () => {
      const asked = { ...order(), amountCents: one.refuseNext() };
      const answer = await one.network.issueCard(asked);
      assert.equal(answer.status, 'declined');
      assert.equal(await one.cardsOf(asked.token), 0);
    });

    it('moves money once for each token', async () => {
      const { networkCardId } = await issue();
      const before = await one.movedTo(networkCardId);
      const topUp = { token: newId('topup'), networkCardId, amountCents: 700 };
      const withdrawal = { token: newId('wdr'), networkCardId, amountCents: 200 };
      for (let asked = 0; asked < 2; asked++) {
        assert.deepEqual(await one.network.topUpCard(topUp), { status: 'succeeded' });
        assert.deepEqual(await one.network.withdrawFromCard(withdrawal), { status: 'succeeded' });
      }
      assert.deepEqual(await one.network.lookUpTopUp(topUp.token), { status: 'succeeded' });
      assert.deepEqual(await one.network.lookUpWithdrawal(withdrawal.token), { status: 'succeeded' });
      if (before !== null) assert.equal(await one.movedTo(networkCardId), before + 500);
    });

    it('freezes, unfreezes and blocks a card, and says the same if it is asked again', async () => {
      const { networkCardId } = await issue();
      for (const cardStatus of ['frozen', 'active', 'blocked'] as const) {
        const change = { token: newId('claim'), networkCardId, cardStatus };
        for (let asked = 0; asked < 2; asked++) {
          assert.deepEqual(await one.network.changeCardStatus(change), { status: 'applied' });
        }
      }
    });

    it('shows the secret details of a card that it issued', async () => {
      const token = newId('card');
      const issued = await one.network.issueCard(order(token));
      if (issued.status !== 'issued') assert.fail(issued.status);
      const { networkCardId, last4 } = issued;
      const { pan } = await one.network.revealCard({ cardId: token, networkCardId });
      assert.equal(pan.slice(-4), last4);
    });

    it('lists the cards that it issued', async () => {
      const since = new Date(Date.now() - 60_000);
      const { networkCardId } = await issue();
      const statuses: string[] = [];
      for await (const card of one.network.listCards(since)) {
        if (card.networkCardId === networkCardId) statuses.push(card.status);
      }
      assert.deepEqual(statuses, ['active']);
    });
  });
}
