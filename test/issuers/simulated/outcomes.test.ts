import assert from 'node:assert/strict';
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { TRANSFER_DIRECTIONS, TRANSFERS } from '../../../domain/transfer.ts';
import {
  type CardNetwork,
  CardNetworkUnavailable,
  type TransferAsked,
} from '../../../issuers/card-network.ts';
import { query } from '../../../platform/db/sql.ts';
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
const applied = { status: 'applied' };
const refused = { status: 'refused', reason: 'refused_by_network' };

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

  describe('status changes', () => {
    beforeEach(async () => {
      networkCardId = (await issuedCard(test.network)).networkCardId;
    });

    const change = (cardStatus: 'active' | 'frozen' | 'blocked') =>
      test.network.changeCardStatus(statusChange(networkCardId, cardStatus));

    async function statusThere(): Promise<string | undefined> {
      const [row] = await query<{ status: string }>(
        test.orm.em.fork(),
        'SELECT status FROM simulated_network.card WHERE network_card_id = $1',
        [networkCardId],
      );
      return row?.status;
    }

    it('are refused for a blocked card, unless they block it, and for an unknown card', async () => {
      await change('blocked');
      for (const status of ['active', 'frozen'] as const) assert.deepEqual(await change(status), refused);
      assert.equal(await statusThere(), 'blocked');
      networkCardId = 'sim_unknown';
      for (const status of ['active', 'frozen', 'blocked'] as const) {
        assert.deepEqual(await change(status), refused);
      }
    });

    it('happen once for each token, however late it is repeated and whatever came in between', async () => {
      const freeze = statusChange(networkCardId, 'frozen');
      assert.deepEqual(await test.network.changeCardStatus(freeze), applied);
      await change('active');
      assert.deepEqual(await test.network.changeCardStatus(freeze), applied);
      assert.equal(await statusThere(), 'active');
      await change('blocked');
      assert.deepEqual(await test.network.changeCardStatus(freeze), applied);
      assert.equal(await statusThere(), 'blocked');
    });

    it('are tied to the first request under their token', async () => {
      const freeze = statusChange(networkCardId, 'frozen');
      await test.network.changeCardStatus(freeze);
      for (const difference of [{ cardStatus: 'active' }, { networkCardId: 'sim_other' }] as const) {
        await assert.rejects(test.network.changeCardStatus({ ...freeze, ...difference }), /answered 409/);
      }
      assert.equal(await statusThere(), 'frozen');
    });

    it('happen one after the other when many arrive at once at two hosts, and a block is the last', async () => {
      const second = await test.host();
      const asked = Array.from({ length: 30 }, (_, index) =>
        statusChange(networkCardId, (['active', 'frozen', 'blocked'] as const)[index % 3] ?? 'active'),
      );
      const answers = await Promise.all(
        asked.map((one, index) => (index % 2 === 0 ? test.network : second.network).changeCardStatus(one)),
      );
      assert.equal(await statusThere(), 'blocked');
      for (const [index, one] of asked.entries()) {
        if (one.cardStatus === 'blocked') assert.deepEqual(answers[index], applied);
        assert.deepEqual(await test.network.changeCardStatus(one), answers[index]);
      }
    });
  });

  describe('the details of cards', () => {
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
          (error) =>
            error instanceof CardNetworkUnavailable && /answered 404; it knows no/.test(error.message),
        );
      }
    });

    it('never appear in the log', () => assert.deepEqual(test.logged, []));
  });
});
