import assert from 'node:assert/strict';
import { TRANSFER_DIRECTIONS, TRANSFERS } from '../../../domain/transfer.ts';
import type { CardNetwork, TransferAsked } from '../../../issuers/card-network.ts';
import { issuance, issuedCard, statusChange, transfer } from '../../support/adapters/network-requests.ts';
import { startTestNetwork, type TestNetwork } from '../../support/adapters/simulated-network.ts';
import { untilHolds } from '../../support/until.ts';

type Outcome = { status: string; reason?: string };

/** An operation whose amount ends in these digits. */
interface Asked {
  token: string;
  ask(): Promise<Outcome>;
  lookUp(): Promise<Outcome>;
}

const KINDS: Record<string, (network: CardNetwork, networkCardId: string, digits: number) => Asked> = {
  issuance(network, _networkCardId, digits) {
    const asked = issuance(digits);
    const { token } = asked;
    return { token, ask: () => network.issueCard(asked), lookUp: () => network.lookUpIssuance(token) };
  },
  'top-up': (network, networkCardId, digits) =>
    transferAsked(network, transfer('topup', networkCardId, digits)),
  withdrawal: (network, networkCardId, digits) =>
    transferAsked(network, transfer('withdrawal', networkCardId, digits)),
};

const transferAsked = (network: CardNetwork, asked: TransferAsked): Asked => ({
  token: asked.token,
  ask: () => network.transfer(asked),
  lookUp: () => network.lookUpTransfer(asked),
});
const DECLINED = { status: 'declined', reason: 'declined_by_network' };
const FAILED = { status: 'failed', reason: 'failed_at_network' };

describe('at the simulated network,', () => {
  let test: TestNetwork;
  let networkCardId: string;
  before(async () => {
    test = await startTestNetwork();
    networkCardId = (await issuedCard(test.network)).networkCardId;
  });
  after(() => test.close());

  for (const [kind, make] of Object.entries(KINDS)) {
    const put = (digits: number, cardId = networkCardId) => make(test.network, cardId, digits);
    const done = kind === 'issuance' ? 'issued' : 'succeeded';

    it(`a ${kind} is called back about once for 41 and 43, twice for 46, and never for what ended at once, 45 or 47`, async () => {
      const asked = [41, 43, 46, 45, 47, 0, 42].map((digits) => put(digits));
      for (const { ask } of asked) await ask();
      await test.skipDelays();
      const [late, failed, twice] = asked.map(({ token }) => token);
      const ours = new Set(asked.map(({ token }) => token));
      await untilHolds(() =>
        assert.deepEqual(
          test.receiver.tokens.filter((token) => ours.has(token)).sort(),
          [late, failed, twice, twice].sort(),
        ),
      );
    });

    if (kind === 'issuance') continue;

    it(`a ${kind} is declined for an unknown card and for a blocked one, and not for a frozen one`, async () => {
      const { networkCardId: cardId } = await issuedCard(test.network);
      await test.network.changeCardStatus(statusChange(cardId, 'frozen'));
      assert.equal((await put(0, cardId).ask()).status, done);
      await test.network.changeCardStatus(statusChange(cardId, 'blocked'));
      for (const one of [put(0, cardId), put(0, 'sim_unknown')]) {
        assert.deepEqual(await one.ask(), DECLINED);
        assert.deepEqual(await one.lookUp(), DECLINED);
      }
    });

    it(`a ${kind} that is unfinished when its card is blocked ${kind === 'top-up' ? 'fails' : 'goes on'}`, async () => {
      const { networkCardId: cardId } = await issuedCard(test.network);
      const [ended, later, elsewhere] = [put(0, cardId), put(41, cardId), put(47)];
      for (const { ask } of [ended, later, elsewhere]) await ask();
      await test.network.changeCardStatus(statusChange(cardId, 'blocked'));
      await test.skipDelays();
      assert.equal((await ended.lookUp()).status, done);
      assert.deepEqual(await later.lookUp(), kind === 'top-up' ? FAILED : { status: done });
      assert.equal((await elsewhere.lookUp()).status, 'accepted');
    });
  }

  for (const direction of TRANSFER_DIRECTIONS) {
    it(`a ${TRANSFERS[direction].noun} is tied to the first request under its token`, async () => {
      const asked = transfer(direction, networkCardId, 0);
      await test.network.transfer(asked);
      for (const change of [{ amountCents: 20_000 }, { networkCardId: 'sim_other' }])
        await assert.rejects(test.network.transfer({ ...asked, ...change }), /answered 409/);
    });
  }
});
