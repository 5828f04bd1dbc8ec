import assert from 'node:assert/strict';
import { ISSUERS, type Issuer } from '../../support/adapters/issuers.ts';
import { networkIdOf } from '../../support/api/network-events.ts';
import { createCard } from '../../support/cards.ts';
import { inboxRead } from '../../support/inbox.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { reconciler } from '../../support/operator/reconcile.ts';
import { asOwner } from '../../support/postgres.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';

const live = { mode: 'live' } as const;
type Payment = Awaited<ReturnType<Issuer['authorize']>>;
const NOTHING = { missing_here: [], missing_at_issuer: [], different: [] };

for (const [name, start] of Object.entries(ISSUERS)) {
  describe(`operator network reconcile, at ${name},`, () => {
    let issuer: Issuer;
    let stack: TestStack;
    let partner: TestPartner;
    let cardId: string;
    let networkCardId: string;
    let operator: ReturnType<typeof reconciler>;
    before(async () => {
      issuer = await start();
      ({ stack } = issuer);
      partner = await fundedPartner(stack, 1_000_000);
      operator = reconciler(stack, issuer.keys);
    });
    beforeEach(async () => {
      cardId = (await createCard(partner, { amount: 1_000 }, live)).json.id;
      networkCardId = await networkIdOf(stack, cardId);
    });
    afterEach(async () => {
      await read();
      assert.deepEqual(await found(), NOTHING);
      assert.deepEqual(await operator.operate('attention', 'list'), []);
    });
    after(async () => {
      await assertLedgerClean(stack);
      await issuer.stop();
    });

    async function found(since?: string): Promise<Record<keyof typeof NOTHING, object[]>> {
      const { matched: _, ...differences } = await operator.reconcile(since);
      return differences;
    }
    /** Once we have read all that the issuer has posted. */
    async function read(): Promise<void> {
      await issuer.posted();
      await inboxRead(stack);
    }
    const transactions = async (): Promise<{ id: string; type: string; amount: number }[]> =>
      (await partner.call('GET', `/cards/${cardId}/transactions`, live)).json.data;
    const reasons = async () => (await operator.differences()).map(({ reason }) => reason).join('\n');
    const thisCard = () => ({ kind: 'card', id: cardId, issuer_id: networkCardId });
    const transaction = (id: string | undefined, issuerId: string) => ({
      kind: 'transaction',
      id,
      issuer_id: issuerId,
    });

    /** @returns the payment, its transaction here and its clearing there */
    async function purchase(cents: number) {
      const payment = await issuer.authorize(networkCardId, cents);
      const clearingId = payment.clear(cents);
      await read();
      const [booked] = await transactions();
      assert.deepEqual([booked?.type, booked?.amount], ['purchase', cents]);
      return { payment, clearingId, id: booked?.id };
    }

    it('finds nothing where both agree', async () => {
      const before = await operator.reconcile();
      await purchase(300);
      await issuer.authorize(networkCardId, 200);
      await read();
      assert.deepEqual(await operator.reconcile(), { ...NOTHING, matched: before.matched + 2 });
      assert.equal(before.matched, issuer.matchedOfCard);
    });

    it('finds a card that was made there by hand, once, until it is gone or dismissed', async () => {
      const byHand = issuer.makeCardByHand();
      const expected = { ...NOTHING, missing_here: [{ kind: 'card', id: null, issuer_id: byHand.id }] };
      assert.deepEqual(await found(), expected);
      const items = await operator.differences();
      assert.match(await reasons(), /the issuer has a card, active, that we don't know/);
      assert.deepEqual(await found(), expected);
      assert.deepEqual(await operator.differences(), items);
      await operator.operate('network', 'dismiss', items[0]?.id ?? '', '--reason', 'made for a test');
      assert.deepEqual(await operator.differences(), []);
      byHand.undo();
    });

    it('finds a card that the issuer does not have', async () => {
      const undo = issuer.loseCard(networkCardId);
      assert.deepEqual(await found(), { ...NOTHING, missing_at_issuer: [thisCard()] });
      undo();
    });

    it('finds a card with another status', async () => {
      const undo = issuer.freezeCard(networkCardId);
      assert.deepEqual(await found(), { ...NOTHING, different: [thisCard()] });
      assert.match(await reasons(), /the card is active here and frozen at the issuer/);
      undo();
    });

    it('books what was never posted, once, in its order', async () => {
      let [clearingId, refundId] = ['', ''];
      const post = await issuer.unposted(async () => {
        const payment = await issuer.authorize(networkCardId, 300);
        clearingId = payment.clear(200);
        refundId = payment.refund(50);
      });
      const { missing_here: missing } = await found();
      const booked = await transactions();
      assert.deepEqual(
        booked.map(({ type, amount }) => [type, amount]),
        [
          ['refund', 50],
          ['purchase', 200],
        ],
      );
      // We decided about the authorization, so it was no news.
      assert.deepEqual(missing, [
        { ...transaction(booked[1]?.id, clearingId), corrected: true },
        { ...transaction(booked[0]?.id, refundId), corrected: true },
      ]);
      assert.deepEqual(await operator.differences(), []);
      assert.deepEqual((await found()).missing_here, []);
      assert.equal((await transactions()).length, 2);
      const [, { action, detail }] = await operator.operate('audit', 'list', '--subject', name.toLowerCase());
      assert.deepEqual([action, detail.corrected], ['network.reconcile', 2]);
      await post();
      await read();
      assert.equal((await transactions()).length, 2);
    });

    it('tries again in the next run what it could not correct', async () => {
      let clearingId = '';
      let undo = () => {};
      await issuer.unposted(async () => {
        const payment = await issuer.authorize(networkCardId, 300);
        clearingId = payment.clear(200);
        undo = issuer.failReading(payment.id);
      });
      assert.deepEqual(await found(), {
        ...NOTHING,
        missing_here: [{ ...transaction(undefined, clearingId), id: null }],
      });
      assert.match(
        await reasons(),
        /a purchase of 200 cents that it never told us .*The next run tries again/,
      );
      undo();
      const { missing_here: missing } = await found();
      const [booked] = await transactions();
      assert.deepEqual(missing, [{ ...transaction(booked?.id, clearingId), corrected: true }]);
    });

    it('finds a clearing with another amount, and one that the issuer does not have', async () => {
      const [changed, lost] = [await purchase(300), await purchase(200)];
      const undo = [changed.payment.changeClearing(350), lost.payment.lose()];
      const differences = await found();
      assert.deepEqual(differences.different, [transaction(changed.id, changed.clearingId)]);
      assert.deepEqual(differences.missing_here, []);
      const [authorization] = await asOwner<{ id: string }>(
        stack,
        'SELECT authorization_id AS id FROM card_transaction WHERE id = $1',
        [lost.id],
      );
      assert.deepEqual(differences.missing_at_issuer, [
        transaction(lost.id, lost.clearingId),
        transaction(authorization?.id, lost.payment.id),
      ]);
      assert.match(await reasons(), /purchase of 300 cents here; purchase of 350 cents at the issuer/);
      for (const one of undo) one();
    });

    it('misses nothing of an older payment, which the issuer lists no more, but a refund that it has lost', async () => {
      const payment = await issuer.authorize(networkCardId, 300, 6);
      payment.clear(300);
      const refundId = payment.refund(100);
      await read();
      const [refund, ...others] = await transactions();
      assert.equal(others.length, 1);
      assert.deepEqual(await found(), NOTHING);
      const undo = payment.loseLast();
      assert.deepEqual(await found(), { ...NOTHING, missing_at_issuer: [transaction(refund?.id, refundId)] });
      undo();
    });

    it('books the lost clearing of an older authorization that is pending here, and compares it until it is right', async () => {
      const payment = await issuer.authorize(networkCardId, 300, 6);
      await read();
      let clearingId = '';
      await issuer.unposted(async () => {
        clearingId = payment.clear(200);
      });
      const since = new Date().toISOString();
      const { missing_here: missing } = await found(since);
      const [booked] = await transactions();
      assert.deepEqual([booked?.type, booked?.amount], ['purchase', 200]);
      assert.deepEqual(missing, [{ ...transaction(booked?.id, clearingId), corrected: true }]);
      assert.deepEqual(await found(since), NOTHING);
      assert.equal((await transactions()).length, 1);
      // What is open about it is looked at until it is right, though it is not listed.
      const undo = payment.changeClearing(250);
      const unlist = payment.relist();
      const expected = { ...NOTHING, different: [transaction(booked?.id, clearingId)] };
      assert.deepEqual(await found(since), expected);
      unlist();
      assert.deepEqual(await found(since), expected);
      undo();
    });

    /** Makes our record of it one that can't be compared. @returns a function that mends it */
    async function spoilHere({ id }: Payment) {
      const set = (said: object) =>
        asOwner(stack, 'UPDATE payment SET said = $2 WHERE payment_id = $1', [id, said]);
      const read = 'SELECT said FROM payment WHERE payment_id = $1';
      const [before] = await asOwner<{ said: object }>(stack, read, [id]);
      await set({});
      return () => set(before?.said ?? {});
    }

    for (const [what, spoil, says] of [
      ['read', (payment: Payment) => payment.spoil(), () => `can't read .*\\(${issuer.spoiltField}\\)`],
      ['compared', spoilHere, () => "a payment can't be compared"],
    ] as const)
      it(`compares all others if one can not be ${what}, and says which`, async () => {
        const [spoilt, lost] = [await purchase(200), await purchase(100)];
        const undo = [await spoil(spoilt.payment), lost.payment.lose()];
        const { different, missing_at_issuer: missing } = await found();
        assert.deepEqual(different, [{ ...transaction(undefined, spoilt.payment.id), id: null }]);
        assert.deepEqual(
          (missing as { issuer_id: string }[]).map(({ issuer_id }) => issuer_id),
          [lost.clearingId, lost.payment.id],
        );
        assert.match(await reasons(), new RegExp(says()));
        for (const one of undo) await one();
      });

    it('asks again for a page that fails, and ends nothing if the issuer stays away', async () => {
      const undo = issuer.freezeCard(networkCardId);
      issuer.failSome();
      assert.deepEqual((await found()).different, [thisCard()]);
      const items = await operator.differences();
      undo();
      const recover = issuer.fail();
      await assert.rejects(operator.reconcile(), new RegExp(`${name}: it answered 500`));
      recover();
      assert.deepEqual(await operator.differences(), items);
    });
  });
}
