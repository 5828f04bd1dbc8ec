import assert from 'node:assert/strict';
import { query } from '../../../platform/db/sql.ts';
import { issuance } from '../../support/adapters/network-requests.ts';
import { startTestNetwork, type TestNetwork } from '../../support/adapters/simulated-network.ts';
import { untilHolds } from '../../support/until.ts';

describe("the simulated network's callbacks", () => {
  let test: TestNetwork;
  beforeEach(async () => {
    test = await startTestNetwork();
  });
  afterEach(() => test.close());

  /** Returns once the network has no callback left to send. */
  async function allSent(): Promise<void> {
    await test.skipDelays();
    await untilHolds(async () => assert.deepEqual(await waiting(), []));
  }

  async function waiting(): Promise<{ token: string; attempts: number }[]> {
    return query(test.orm.em.fork(), 'SELECT token, attempts FROM simulated_network.callback ORDER BY id');
  }

  /** Lets the time until the next attempts pass. */
  async function skipPauses(): Promise<void> {
    await query(test.orm.em.fork(), 'UPDATE simulated_network.callback SET due_at = now()');
  }

  async function ask(lastDigits: number): Promise<string> {
    const asked = issuance(lastDigits);
    await test.network.issueCard(asked).catch(() => test.network.issueCard(asked));
    return asked.token;
  }

  it('are repeated when the receiver refuses them at first', async () => {
    test.receiver.status = 503;
    const token = await ask(41);
    await test.skipDelays();
    await untilHolds(() => assert.ok(test.receiver.tokens.includes(token)));
    test.receiver.status = 200;
    await allSent();
    assert.ok(test.receiver.tokens.length >= 2);
    assert.deepEqual(new Set(test.receiver.tokens), new Set([token]));
    assert.deepEqual(test.logged, []);
  });

  it('are dropped after five attempts, and a look-up still finds the card', async () => {
    test.receiver.status = 302;
    const token = await ask(41);
    await untilHolds(async () => {
      await skipPauses();
      assert.deepEqual(await waiting(), []);
    });
    assert.deepEqual(test.receiver.tokens, Array(5).fill(token));
    await untilHolds(() => assert.equal(test.logged.length, 1));
    assert.match(test.logged[0] ?? '', new RegExp(`${token}.*HTTP 302.*polling will find the outcome`));
    await test.skipDelays();
    assert.equal((await test.network.lookUpIssuance(token)).status, 'issued');
  });

  it("are divided among the network's hosts", async () => {
    const second = await test.host();
    const tokens = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const asked = issuance(41);
        await (index % 2 === 0 ? test.network : second.network).issueCard(asked);
        return asked.token;
      }),
    );
    await allSent();
    assert.deepEqual([...test.receiver.tokens].sort(), tokens.sort());
  });
});
