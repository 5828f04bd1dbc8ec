import assert from 'node:assert/strict';
import type { CardNetwork, TopUpLookUpAnswer } from '../../../issuers/card-network.ts';
import { issuedCard, statusChange, topUp, withdrawal } from '../../support/adapters/network-requests.ts';
import { startTestNetwork, type TestNetwork } from '../../support/adapters/simulated-network.ts';
import { untilHolds } from '../../support/until.ts';

interface Direction {
  request: typeof topUp;
  move: (network: CardNetwork, asked: ReturnType<typeof topUp>) => Promise<TopUpLookUpAnswer>;
  lookUp: (network: CardNetwork, token: string) => Promise<TopUpLookUpAnswer>;
}

const DIRECTIONS: Record<string, Direction> = {
  'top-ups': {
    request: topUp,
    move: (network, asked) => network.topUpCard(asked),
    lookUp: (network, token) => network.lookUpTopUp(token),
  },
  withdrawals: {
    request: withdrawal,
    move: (network, asked) => network.withdrawFromCard(asked),
    lookUp: (network, token) => network.lookUpWithdrawal(token),
  },
};

for (const [name, direction] of Object.entries(DIRECTIONS))
  describe(`the simulated network's ${name}`, () => {
    const { request } = direction;
    const move = (asked: ReturnType<typeof topUp>) => direction.move(test.network, asked);
    const lookUp = (token: string) => direction.lookUp(test.network, token);
    let test: TestNetwork;
    let networkCardId: string;
    before(async () => {
      test = await startTestNetwork();
      networkCardId = (await issuedCard(test.network)).networkCardId;
    });
    after(() => test.close());

    async function becomes(token: string, outcome: TopUpLookUpAnswer): Promise<void> {
      await test.skipDelays();
      assert.deepEqual(await lookUp(token), outcome);
    }

    const succeeded = { status: 'succeeded' } as const;
    const accepted = { status: 'accepted' } as const;
    const declined = { status: 'declined', reason: 'declined_by_network' } as const;
    const failed = { status: 'failed', reason: 'failed_at_network' } as const;

    for (const [digits, answer, outcome] of [
      [0, succeeded, succeeded],
      [41, accepted, succeeded],
      [42, declined, declined],
      [43, accepted, failed],
      [45, accepted, succeeded],
      [46, accepted, succeeded],
      [47, accepted, accepted],
    ] as const) {
      it(`are ${answer.status} and in the end ${outcome.status}, also when they are repeated, for an amount ending in ${digits}`, async () => {
        const asked = request(networkCardId, digits);
        assert.deepEqual(await move(asked), answer);
        await becomes(asked.token, outcome);
        assert.deepEqual(await move(asked), outcome);
      });
    }

    it('are done for an amount ending in 44 although the answer is lost, and a look-up and a second request find them', async () => {
      const asked = request(networkCardId, 44);
      await assert.rejects(move(asked), /no response \(UND_ERR_SOCKET\)/);
      assert.deepEqual(await lookUp(asked.token), succeeded);
      assert.deepEqual(await move(asked), succeeded);
    });

    it('get 503 three times for an amount ending in 48, and are unknown until they are accepted', async () => {
      const asked = request(networkCardId, 48);
      for (let attempt = 1; attempt <= 3; attempt++) {
        await assert.rejects(move(asked), /answered 503/);
        assert.deepEqual(await lookUp(asked.token), { status: 'unknown' });
      }
      assert.deepEqual(await move(asked), succeeded);
    });

    it('call back as issuances do', async () => {
      const [once, never, twice] = [41, 45, 46].map((digits) => request(networkCardId, digits));
      assert.ok(once && never && twice);
      for (const asked of [once, never, twice]) await move(asked);
      await test.skipDelays();
      await untilHolds(() => {
        const ours = test.receiver.tokens.filter((token) =>
          [once, never, twice].some((one) => one.token === token),
        );
        assert.deepEqual(ours.sort(), [once.token, twice.token, twice.token].sort());
      });
    });

    it('are declined for an unknown card and for a blocked one', async () => {
      const asked = request('sim_unknown', 0);
      assert.deepEqual(await move(asked), declined);
      assert.deepEqual(await lookUp(asked.token), declined);
      const blocked = await issuedCard(test.network);
      await test.network.changeCardStatus(statusChange(blocked.networkCardId, 'blocked'));
      assert.deepEqual(await move(request(blocked.networkCardId, 0)), declined);
    });

    if (name === 'top-ups')
      it('fail if they are unfinished when their card is blocked, and those of other cards go on', async () => {
        const card = await issuedCard(test.network);
        const [done, later, never] = [0, 41, 47].map((digits) => request(card.networkCardId, digits));
        const other = request(networkCardId, 47);
        assert.ok(done && later && never);
        for (const asked of [done, later, never, other]) await move(asked);
        await test.network.changeCardStatus(statusChange(card.networkCardId, 'blocked'));
        assert.deepEqual(await lookUp(done.token), succeeded);
        assert.deepEqual(await lookUp(later.token), failed);
        assert.deepEqual(await move(never), failed);
        assert.deepEqual(await lookUp(other.token), accepted);
      });

    if (name === 'withdrawals')
      it('go on if they are unfinished when their card is blocked', async () => {
        const card = await issuedCard(test.network);
        const [done, later, refused] = [0, 41, 43].map((digits) => request(card.networkCardId, digits));
        assert.ok(done && later && refused);
        for (const asked of [done, later, refused]) await move(asked);
        await test.network.changeCardStatus(statusChange(card.networkCardId, 'blocked'));
        assert.deepEqual(await lookUp(done.token), succeeded);
        await becomes(later.token, succeeded);
        await becomes(refused.token, failed);
      });

    it('are tied to the first request under their token, and happen on frozen cards too', async () => {
      const { networkCardId: frozen } = await issuedCard(test.network);
      await test.network.changeCardStatus(statusChange(frozen, 'frozen'));
      const asked = request(frozen, 0);
      assert.deepEqual(await move(asked), succeeded);
      for (const change of [{ amountCents: 20_000 }, { networkCardId }]) {
        await assert.rejects(move({ ...asked, ...change }), /answered 409/);
      }
    });

    it('are unknown under a token that was never used', async () => {
      assert.deepEqual(await lookUp(request('x', 0).token), { status: 'unknown' });
    });

    it('log no warning or error about any of this', () => assert.deepEqual(test.logged, []));
  });
