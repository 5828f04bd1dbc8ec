import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createSimulatedClient } from '../../../issuers/simulated/client.ts';
import { simulatedNetworkCredentials } from '../../../issuers/simulated/credentials.ts';
import { query } from '../../../platform/db/sql.ts';
import { issuance } from '../../support/adapters/network-requests.ts';
import { startTestNetwork, type TestNetwork } from '../../support/adapters/simulated-network.ts';
import { untilHolds } from '../../support/until.ts';

describe("the simulated network's state", () => {
  let test: TestNetwork;
  beforeEach(async () => {
    test = await startTestNetwork();
  });
  afterEach(() => test.close());

  async function cardsOf(token: string): Promise<number> {
    const rows = await query(test.orm.em.fork(), 'SELECT 1 FROM simulated_network.card WHERE token = $1', [
      token,
    ]);
    return rows.length;
  }

  for (const digits of [0, 44, 47, 48]) {
    it(`has one card after 20 simultaneous requests with one token at two hosts, for an amount ending in ${digits}`, async () => {
      const second = await test.host();
      const asked = issuance(digits);
      const results = await Promise.allSettled(
        Array.from({ length: 20 }, (_, index) =>
          (index % 2 === 0 ? test.network : second.network).issueCard(asked),
        ),
      );
      const lost = results.filter((result) => result.status === 'rejected').length;
      assert.equal(lost, digits === 44 ? 1 : digits === 48 ? 3 : 0);
      const answers = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      assert.equal(new Set(answers.map((answer) => JSON.stringify(answer))).size, 1);
      assert.equal(answers[0]?.status, digits === 47 ? 'accepted' : 'issued');
      assert.equal(await cardsOf(asked.token), 1);
    });
  }

  it('ties a token to its first request, except for the name, which is not stored', async () => {
    const asked = issuance(0);
    const answer = await test.network.issueCard(asked);
    assert.deepEqual(await test.network.issueCard({ ...asked, cardholderName: null }), answer);
    for (const change of [{ amountCents: 20_000 }, { bin: '411111' }, { productCode: 'other' }]) {
      await assert.rejects(test.network.issueCard({ ...asked, ...change }), /answered 409/);
    }
    assert.deepEqual(await test.network.lookUpIssuance(asked.token), answer);
    assert.equal(await cardsOf(asked.token), 1);
  });

  it('survives kill -9 of its only host, including callbacks', async () => {
    await test.stop();
    const children: ChildProcess[] = [];
    const startHost = async () => {
      const child = spawn(
        process.execPath,
        [
          fileURLToPath(new URL('../../support/adapters/simulated-network-process.ts', import.meta.url)),
          test.databaseUrl,
          test.receiver.url,
          test.secret.export().toString('hex'),
        ],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      );
      children.push(child);
      const [url] = await once(child.stdout as NodeJS.EventEmitter, 'data');
      const { bearerToken } = simulatedNetworkCredentials(test.secret);
      return {
        child,
        network: createSimulatedClient({ url: String(url).trim(), bearerToken, keyLifetimeMs: 72_000_000 }),
      };
    };
    try {
      const first = await startHost();
      const [atOnce, later, lost] = [issuance(0), issuance(41), issuance(44)];
      const issued = await first.network.issueCard(atOnce);
      assert.deepEqual(await first.network.issueCard(later), { status: 'accepted' });
      await assert.rejects(first.network.issueCard(lost), /no response/);
      first.child.kill('SIGKILL');
      await once(first.child, 'exit');
      await assert.rejects(
        first.network.lookUpIssuance(atOnce.token),
        /ECONNREFUSED|UND_ERR_SOCKET|ECONNRESET/,
      );
      await first.network.close();

      const second = await startHost();
      assert.deepEqual(await second.network.lookUpIssuance(atOnce.token), issued);
      assert.equal((await second.network.issueCard(lost)).status, 'issued');
      await test.skipDelays();
      await untilHolds(() => assert.deepEqual(test.receiver.tokens, [later.token]));
      assert.equal((await second.network.issueCard(later)).status, 'issued');
      await second.network.close();
    } finally {
      for (const child of children) child.kill('SIGKILL');
    }
  });
});
