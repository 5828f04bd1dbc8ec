import assert from 'node:assert/strict';
import { pino } from 'pino';
import { startApi } from '../../api/server.ts';
import { type CardNetwork, CardNetworkUnavailable } from '../../issuers/card-network.ts';
import { askedIfOwn, takeLiveNetwork } from '../../issuers/own-network.ts';
import { StartRefused } from '../../platform/process/run-process.ts';
import { startWorker } from '../../worker/start-worker.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner, setCardStatus } from '../support/money.ts';
import { asOwner, connectTo, ownerUrlOf } from '../support/postgres.ts';
import { startTestStack, type TestStack, testConfig, testWorkflowBundle } from '../support/stack.ts';
import { until } from '../support/until.ts';

const SILENT = pino({ level: 'silent' });

describe("a database's live data is at one card network, and so", () => {
  let stack: TestStack;
  beforeEach(async () => {
    stack = await startTestStack();
  });
  afterEach(() => stack.stop());

  const named = async () =>
    (await asOwner<{ network: string }>(stack, 'SELECT network FROM live_network')).map((row) => row.network);
  const take = (network: 'increase' | 'lithic' | 'simulated' | 'none') => takeLiveNetwork(stack.orm, network);

  it('API and worker refuse to start with another network while cards are open or operations pending', async () => {
    assert.deepEqual(await named(), []);
    const partner = await fundedPartner(stack);
    const live = { mode: 'live' } as const;
    assert.equal((await createCard(partner, { amount: 5000 }, live)).json.status, 'active');
    const { json: pending } = await createCard(partner, { amount: 5047 }, live);
    await createCard(partner, { amount: 5000 });
    assert.deepEqual(await named(), ['simulated']);

    const refused = (error: unknown) =>
      error instanceof StartRefused &&
      error.message.startsWith(
        "CARD_NETWORK is increase, but this database's live data is at simulated: 2 cards neither blocked nor failed, " +
          '1 operation pending. Set CARD_NETWORK=simulated, or use another database.',
      );
    const { databaseUrl, taskQueuePrefix, encryptionKeys } = stack.config;
    const config = await testConfig({
      ...{ databaseUrl, taskQueuePrefix, encryptionKeys, cardNetwork: 'increase' },
    });
    await assert.rejects(startApi(config, SILENT), refused);
    const workflowBundle = await testWorkflowBundle();
    await assert.rejects(startWorker(config, SILENT, { workflowBundle }), refused);
    const without = await startApi({ ...config, cardNetwork: 'none' }, SILENT);
    await without.stop();

    await setCardStatus(stack, partner.id, 'blocked');
    await assert.rejects(take('increase'), /0 cards neither blocked nor failed, 1 operation pending/);
    await asOwner(stack, 'UPDATE card SET claim_id = NULL WHERE id = $1', [pending.id]);
    await setCardStatus(stack, partner.id, 'failed', { cardId: pending.id, failureCode: 'issuance_failed' });
    await take('increase');
    assert.deepEqual(await named(), ['increase']);
  });

  it('what was made before networks were recorded belongs to the next process to start', async () => {
    await createCard(await fundedPartner(stack), { amount: 5000 }, { mode: 'live' });
    await asOwner(stack, 'DELETE FROM live_network');
    await take('none');
    assert.deepEqual(await named(), []);
    await take('lithic');
    await assert.rejects(take('simulated'), /live data is at lithic: 1 card /);
  });

  it('of two that begin on an empty database, only one is ever asked', async () => {
    await Promise.all([take('increase'), take('lithic')]);
    const asked: string[] = [];
    const asks = ['increase', 'lithic'].flatMap((name) => {
      const network = { issueCard: async () => asked.push(name) } as unknown as CardNetwork;
      const { issueCard } = askedIfOwn(network, name, stack.orm);
      return Array.from({ length: 4 }, () => issueCard({} as Parameters<typeof issueCard>[0]));
    });
    const ended = await Promise.allSettled(asks);
    const [winner] = await named();
    assert.deepEqual(asked, Array(4).fill(winner));
    for (const one of ended)
      assert.ok(one.status === 'fulfilled' || one.reason instanceof CardNetworkUnavailable);
  });

  it('a process that starts waits for one that is about to ask, and counts what it has begun', async () => {
    const partner = await fundedPartner(stack);
    await createCard(partner, { amount: 5000 }, { mode: 'live' });
    await setCardStatus(stack, partner.id, 'blocked');
    await using asking = await connectTo(ownerUrlOf(stack.config.databaseUrl));
    await asking.query('BEGIN');
    await asking.query("SELECT hold_live_network('simulated')");
    const started = assert.rejects(take('lithic'), /live data is at simulated: 1 card /);
    await until('it waits', async () => {
      const waiting = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
      return (await asOwner(stack, waiting)).length === 1;
    });
    await asking.query("UPDATE card SET status = 'active' WHERE mode = 'live'");
    await asking.query('COMMIT');
    await started;
  });
});
