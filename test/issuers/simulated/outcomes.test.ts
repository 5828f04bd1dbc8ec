import assert from 'node:assert/strict';
import { CardNetworkUnavailable, type LookUpAnswer } from '../../../issuers/card-network.ts';
import { query } from '../../../platform/db/sql.ts';
import { issuance } from '../../support/adapters/network-requests.ts';
import { startTestNetwork, type TestNetwork } from '../../support/adapters/simulated-network.ts';

describe('the simulated network', () => {
  let test: TestNetwork;
  before(async () => {
    test = await startTestNetwork();
  });
  after(() => test.close());

  async function outcomeOf(token: string): Promise<LookUpAnswer> {
    await test.skipDelays();
    return test.network.lookUpIssuance(token);
  }

  for (const digits of [0, 1, 40, 49, 99]) {
    it(`issues a card at once for an amount ending in ${digits}`, async () => {
      const asked = issuance(digits);
      const answer = await test.network.issueCard(asked);
      assert.equal(answer.status, 'issued');
      assert.deepEqual(await test.network.issueCard(asked), answer);
      assert.deepEqual(await test.network.lookUpIssuance(asked.token), answer);
    });
  }

  for (const digits of [41, 45, 46]) {
    it(`accepts an amount ending in ${digits} and issues the card later`, async () => {
      const asked = issuance(digits);
      assert.deepEqual(await test.network.issueCard(asked), { status: 'accepted' });
      const outcome = await outcomeOf(asked.token);
      assert.equal(outcome.status, 'issued');
      assert.deepEqual(await test.network.issueCard(asked), outcome);
    });
  }

  it('declines an amount ending in 42, also when it is asked again', async () => {
    const asked = issuance(42);
    const declined = { status: 'declined', reason: 'declined_by_network' };
    assert.deepEqual(await test.network.issueCard(asked), declined);
    assert.deepEqual(await test.network.issueCard(asked), declined);
    assert.deepEqual(await test.network.lookUpIssuance(asked.token), declined);
  });

  it('accepts an amount ending in 43 and fails later', async () => {
    const asked = issuance(43);
    assert.deepEqual(await test.network.issueCard(asked), { status: 'accepted' });
    const failed = { status: 'failed', reason: 'failed_at_network' };
    assert.deepEqual(await outcomeOf(asked.token), failed);
    assert.deepEqual(await test.network.issueCard(asked), failed);
  });

  it('loses its answer for an amount ending in 44, although a second request and a look-up find the card', async () => {
    const asked = issuance(44);
    await assert.rejects(test.network.issueCard(asked), (error) => {
      return error instanceof CardNetworkUnavailable && /no response \(UND_ERR_SOCKET\)/.test(error.message);
    });
    const found = await test.network.lookUpIssuance(asked.token);
    assert.equal(found.status, 'issued');
    assert.deepEqual(await test.network.issueCard(asked), found);
  });

  it('accepts an amount ending in 47 and never completes it', async () => {
    const asked = issuance(47);
    assert.deepEqual(await test.network.issueCard(asked), { status: 'accepted' });
    const [row] = await query(
      test.orm.em.fork(),
      'SELECT completes_at FROM simulated_network.operation WHERE token = $1',
      [asked.token],
    );
    assert.deepEqual(row, { completes_at: null });
    const found = await test.network.lookUpIssuance(asked.token);
    assert.ok(found.status === 'accepted');
    assert.match(found.card?.networkCardId ?? '', /^sim_/);
    assert.deepEqual(await test.network.issueCard(asked), { status: 'accepted' });
  });

  it('answers 503 three times for an amount ending in 48, and knows nothing of it until it accepts', async () => {
    const asked = issuance(48);
    for (let attempt = 1; attempt <= 3; attempt++) {
      await assert.rejects(test.network.issueCard(asked), /answered 503/);
      assert.deepEqual(await test.network.lookUpIssuance(asked.token), { status: 'unknown' });
    }
    const answer = await test.network.issueCard(asked);
    assert.equal(answer.status, 'issued');
    assert.deepEqual(await test.network.lookUpIssuance(asked.token), answer);
  });

  it('knows nothing of a token that it was never asked for', async () => {
    assert.deepEqual(await test.network.lookUpIssuance(issuance(0).token), { status: 'unknown' });
  });

  it('logs no warning or error about any of this', () => {
    assert.deepEqual(test.logged, []);
  });
});
