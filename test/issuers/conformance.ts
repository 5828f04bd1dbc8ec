import assert from 'node:assert/strict';
import { TRANSFER_DIRECTIONS, TRANSFERS, type TransferDirection } from '../../domain/transfer.ts';
import {
  type CardNetwork,
  CardNetworkUnavailable,
  type ListedMovement,
  type TrueUpAsked,
} from '../../issuers/card-network.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { toArray } from '../support/adapters/increase.ts';
import { readable } from '../support/adapters/readable.ts';
import { FAULTS, type Fault, RETRY_AFTER_MS, type UnrulyProxy } from '../support/adapters/unruly-proxy.ts';

/** A network's client, and the fake that it speaks to over HTTP, through a proxy that breaks requests. */
export interface NetworkUnderTest {
  network: CardNetwork;
  proxy: UnrulyProxy;
  /** The pauses that the network asked for and that every process would keep; null if its requests have no budget. */
  pausesMs: number[] | null;
  /** How much it has taken back from the card's account; null if there is nothing to take back at this network. */
  returnedFrom(networkCardId: string): Promise<number | null>;
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
export function describeConformance(
  name: string,
  start: (terms: { keyLifetimeMs: number }) => Promise<NetworkUnderTest>,
): void {
  describe(`${name}, as every card network,`, () => {
    let one: NetworkUnderTest;
    before(async () => {
      one = await start({ keyLifetimeMs: 20 * 3_600_000 });
    });
    after(() => one.stop());

    const order = () => ({
      token: newId('card'),
      productCode: 'TEST-USD',
      bin: '424242',
      amountCents: 5_000,
      cardholderName: null,
    });
    const move = (direction: TransferDirection, networkCardId: string, amountCents: number) => ({
      token: newId(TRANSFERS[direction].idPrefix),
      direction,
      networkCardId,
      amountCents,
    });
    const issue = async () => {
      const asked = order();
      const issued = await one.network.issueCard(asked);
      return issued.status === 'issued' ? { token: asked.token, ...issued } : assert.fail(issued.status);
    };
    const listed = async (since: Date, tokens: readonly string[]): Promise<ListedMovement[]> => {
      const all = await toArray(readable(one.network.listMovements(since)));
      return all.filter(({ token }) => tokens.includes(token ?? ''));
    };

    it('issues one card for a token, however often and at once it is asked', async () => {
      const asked = order();
      const first = await one.network.issueCard(asked);
      const again = await Promise.all(Array.from({ length: 5 }, () => one.network.issueCard(asked)));
      for (const answer of again) assert.deepEqual(answer, first);
      assert.deepEqual(await one.network.lookUpIssuance(asked.token), first);
      assert.equal(await one.cardsOf(asked.token), 1);
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
      const topUp = move('topup', networkCardId, 700);
      const withdrawal = move('withdrawal', networkCardId, 200);
      for (let asked = 0; asked < 2; asked++) {
        assert.deepEqual(await one.network.transfer(topUp), { status: 'succeeded' });
        assert.deepEqual(await one.network.transfer(withdrawal), { status: 'succeeded' });
      }
      assert.deepEqual(await one.network.lookUpTransfer(topUp), { status: 'succeeded' });
      assert.deepEqual(await one.network.lookUpTransfer(withdrawal), { status: 'succeeded' });
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
      const { token, networkCardId, last4 } = await issue();
      const { pan } = await one.network.revealCard({ cardId: token, networkCardId });
      assert.equal(pan.slice(-4), last4);
    });

    it('lists the cards that it issued', async () => {
      const since = new Date(Date.now() - 60_000);
      const { networkCardId } = await issue();
      const cards = await toArray(readable(one.network.listCards(since)));
      const found = cards.filter((card) => card.networkCardId === networkCardId);
      assert.deepEqual(
        found.map(({ status }) => status),
        ['active'],
      );
    });

    it('lists the money that it moved, each movement with the id that it was asked for', async () => {
      const since = new Date(Date.now() - 60_000);
      const { token, networkCardId } = await issue();
      const topUp = move('topup', networkCardId, 700);
      const withdrawal = move('withdrawal', networkCardId, 200);
      await one.network.transfer(topUp);
      await one.network.transfer(withdrawal);
      const found = await listed(since, [token, topUp.token, withdrawal.token]);
      const seen = found.map(({ kind, token, amountCents, status }) => [kind, token, amountCents, status]);
      const moved = [
        ['issuance', token, 5_000, 'succeeded'],
        ['topup', topUp.token, 700, 'succeeded'],
        ['withdrawal', withdrawal.token, 200, 'succeeded'],
      ];
      assert.deepEqual(seen, one.network.abilities.moneyHeldBy === 'network' ? moved : []);
      assert.equal(new Set(found.map(({ networkMovementId }) => networkMovementId)).size, found.length);
    });

    it('moves the money of a blocked card back once for each token, and lists what it moved', async () => {
      const since = new Date(Date.now() - 60_000);
      const { networkCardId } = await issue();
      await change(networkCardId, 'blocked');
      const asked = fromCard(networkCardId, 3_000);
      for (let times = 0; times < 2; times++) {
        assert.deepEqual(await one.network.trueUp(asked), { status: 'succeeded' });
      }
      const returned = await one.returnedFrom(networkCardId);
      if (returned === null) return;
      assert.equal(returned, 3_000);
      const found = await listed(since, [asked.token]);
      assert.deepEqual(
        found.map(({ kind, amountCents }) => [kind, amountCents]),
        [['true_up', 3_000]],
      );
      const tooMuch = fromCard(networkCardId, 3_000);
      // It may be free there later.
      assert.equal((await one.network.trueUp(tooMuch)).status, 'not_yet');
      assert.equal(await one.returnedFrom(networkCardId), 3_000);
    });

    it('moves money to a card, a blocked one too, once for each token, and lists what it moved', async () => {
      const since = new Date(Date.now() - 60_000);
      const { networkCardId } = await issue();
      const before = await one.movedTo(networkCardId);
      const moved: string[] = [];
      for (const status of ['active', 'blocked'] as const) {
        if (status === 'blocked') await change(networkCardId, status);
        const asked = toCard(networkCardId, 400);
        for (let times = 0; times < 2; times++) {
          assert.deepEqual(await one.network.trueUp(asked), { status: 'succeeded' });
        }
        moved.push(asked.token);
      }
      if ((await one.returnedFrom(networkCardId)) === null) return;
      assert.equal(await one.movedTo(networkCardId), Number(before) + 800);
      const found = await listed(since, moved);
      assert.deepEqual(
        found.map(({ token, amountCents }) => [token, amountCents]),
        moved.map((token) => [token, 400]),
      );
    });

    it('knows nothing that it was not asked for, whatever it is', async () => {
      assert.deepEqual(await one.network.lookUpIssuance(newId('card')), { status: 'unknown' });
      // Where only our ledger knows the money, a movement has succeeded as soon as it is asked for.
      const unmoved = one.network.abilities.moneyHeldBy === 'network' ? 'unknown' : 'succeeded';
      for (const direction of TRANSFER_DIRECTIONS) {
        const unknown = move(direction, 'card_of_nobody', 700);
        assert.deepEqual(await one.network.lookUpTransfer(unknown), { status: unmoved });
      }
    });

    describe('if a request of an operation meets a fault,', () => {
      for (const fault of FAULTS) {
        it(`never takes it for a no, and has acted once when it is asked again: ${fault}`, () =>
          survives(fault, [1, 2, 3]));
      }

      it('gives up in time if no answer comes, and has acted once when it is asked again', async () => {
        const asked = order();
        one.proxy.breakNext('no answer after acting', { acting: 1 });
        await assert.rejects(one.network.issueCard(asked), CardNetworkUnavailable);
        assert.equal(one.proxy.mend(), 1);
        assert.equal((await one.network.issueCard(asked)).status, 'issued');
        assert.equal(await one.cardsOf(asked.token), 1);
      });

      it('has every process wait for as long as a 429 says', async () => {
        if (one.pausesMs === null) return;
        one.pausesMs.length = 0;
        one.proxy.breakNext('429', { acting: 1 });
        await assert.rejects(one.network.issueCard(order()), CardNetworkUnavailable);
        one.proxy.mend();
        assert.deepEqual(one.pausesMs, [RETRY_AFTER_MS]);
      });
    });

    for (const fault of [
      '500 before acting',
      'half an answer after acting',
      'another shape after acting',
    ] as const) {
      it(`does not take what it can't read for something that isn't there: ${fault}`, async () => {
        const { token, networkCardId } = await issue();
        const topUp = move('topup', networkCardId, 700);
        await one.network.transfer(topUp);
        one.proxy.breakAll(fault);
        const isAway = (asked: Promise<unknown>) => assert.rejects(asked, CardNetworkUnavailable);
        await isAway(one.network.lookUpIssuance(token));
        await isAway(one.network.revealCard({ cardId: token, networkCardId }));
        await isAway(toArray(readable(one.network.listCards(new Date(Date.now() - 60_000)))));
        if (one.network.abilities.moneyHeldBy === 'network') {
          await isAway(one.network.lookUpTransfer(topUp));
          await isAway(toArray(readable(one.network.listMovements(new Date(Date.now() - 60_000)))));
        }
        assert.ok(one.proxy.mend() > 0);
        assert.equal((await one.network.lookUpIssuance(token)).status, 'issued');
      });
    }

    it('is never asked to act under a token that is older than NETWORK_KEY_LIFETIME', async () => {
      const aged = await start({ keyLifetimeMs: -1 });
      const networkCardId = 'card_of_nobody';
      await assert.rejects(aged.network.issueCard(order()), CardNetworkUnavailable);
      if (aged.network.abilities.moneyHeldBy === 'network') {
        for (const direction of TRANSFER_DIRECTIONS) {
          const asked = move(direction, networkCardId, 700);
          await assert.rejects(aged.network.transfer(asked), CardNetworkUnavailable);
        }
      }
      const hasAccounts = (await aged.returnedFrom(networkCardId)) !== null;
      const refused = { status: 'refused', reason: 'key_expired' };
      const answer = hasAccounts ? refused : { status: 'succeeded' };
      for (const asked of [fromCard(networkCardId, 700), toCard(networkCardId, 700)])
        assert.deepEqual(await aged.network.trueUp(asked), answer);
      assert.equal(aged.proxy.acted(), 0);
      await aged.stop();
    });

    const fromCard = (networkCardId: string, amountCents: number): TrueUpAsked => ({
      token: newId('tru'),
      direction: 'from_card',
      networkCardId,
      amountCents,
    });
    const toCard = (networkCardId: string, amountCents: number): TrueUpAsked => ({
      ...fromCard(networkCardId, amountCents),
      direction: 'to_card',
    });

    const change = (networkCardId: string, cardStatus: 'frozen' | 'blocked', token = newId('claim')) =>
      one.network.changeCardStatus({ token, networkCardId, cardStatus });

    /** Asks for each operation, with the fault at its first request that acts, then at its second, and so on. */
    async function survives(fault: Fault, places: readonly number[]): Promise<void> {
      for (const acting of places) {
        const asking = order();
        const issue = () => one.network.issueCard(asking);
        await firstBroken(fault, acting, issue, 'issued');
        const issued = await issue();
        const networkCardId = issued.status === 'issued' ? issued.networkCardId : assert.fail();
        assert.deepEqual(await one.network.lookUpIssuance(asking.token), issued);
        assert.equal(await one.cardsOf(asking.token), 1);
        if (acting > 1) continue;

        const before = await one.movedTo(networkCardId);
        const topUp = move('topup', networkCardId, 700);
        await firstBroken(fault, acting, () => one.network.transfer(topUp), 'succeeded');
        const withdrawal = move('withdrawal', networkCardId, 200);
        await firstBroken(fault, acting, () => one.network.transfer(withdrawal), 'succeeded');
        if (before !== null) assert.equal(await one.movedTo(networkCardId), before + 500);

        for (const status of ['frozen', 'blocked'] as const) {
          const token = newId('claim');
          await firstBroken(fault, acting, () => change(networkCardId, status, token), 'applied');
        }
        const back = fromCard(networkCardId, 3_000);
        await firstBroken(fault, acting, () => one.network.trueUp(back), 'succeeded');
        const returned = await one.returnedFrom(networkCardId);
        if (returned !== null) assert.equal(returned, 3_000);
        const covered = await one.movedTo(networkCardId);
        const missing = toCard(networkCardId, 400);
        await firstBroken(fault, acting, () => one.network.trueUp(missing), 'succeeded');
        if (returned !== null) assert.equal(await one.movedTo(networkCardId), Number(covered) + 400);
      }
    }

    /** The first try ends with yes, or without a definite answer; without the fault it is a yes. */
    async function firstBroken(
      fault: Fault,
      acting: number,
      ask: () => Promise<{ status: string }>,
      yes: string,
    ): Promise<void> {
      one.proxy.breakNext(fault, { acting });
      const first = await ask().catch((error: unknown) => {
        assert.ok(error instanceof CardNetworkUnavailable, String(error));
        return null;
      });
      const broken = one.proxy.mend();
      if (first !== null) assert.equal(first.status, yes);
      // Nothing but what acted may have been answered in spite of the fault.
      if (broken > 0 && acting === 1 && !fault.includes('after')) assert.equal(first, null);
      assert.equal((await ask()).status, yes);
    }
  });
}
