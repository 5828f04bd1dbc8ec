import assert from 'node:assert/strict';
import { query } from '../../../platform/db/sql.ts';
import { issuedCard, statusChange } from '../../support/adapters/network-requests.ts';
import { startTestNetwork, type TestNetwork } from '../../support/adapters/simulated-network.ts';

const applied = { status: 'applied' };
const refused = { status: 'refused', reason: 'refused_by_network' };

describe("the simulated network's status changes", () => {
  let test: TestNetwork;
  let networkCardId: string;
  before(async () => {
    test = await startTestNetwork();
  });
  after(() => test.close());
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
