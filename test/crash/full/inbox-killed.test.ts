import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { freePort } from '../../../dev/free-port.ts';
import { networkIdOf, networkTransaction, sendAsNetwork } from '../../support/api/network-events.ts';
import { whyWaiting } from '../../support/api/why-waiting.ts';
import { createCard, mistakeNetworkCard } from '../../support/cards.ts';
import {
  dieAt,
  kill,
  scratchFolder,
  startApiProcess,
  startDyingWorker,
} from '../../support/crash/processes.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;

describe('a kept transaction of the network', () => {
  let stack: TestStack;
  let partner: TestPartner;
  const folder = scratchFolder();
  before(async () => {
    stack = await startTestStack();
    partner = await fundedPartner(stack, 100_000);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  const send = (body: object, config = stack.config) =>
    sendAsNetwork({ ...stack, config }, '/network/transactions', JSON.stringify(body));
  const list = async (cardId: string) =>
    (await partner.call('GET', `/cards/${cardId}/transactions`, live)).json.data;
  const identify = (cardId: string, networkCardId: string) =>
    asOwner(stack, "UPDATE card SET network_card_id = $2, last4 = '1234' WHERE id = $1", [
      cardId,
      networkCardId,
    ]);

  for (const [when, isKept] of [
    ['before', false],
    ['after', false],
    ['after commit', true],
  ] as const) {
    it(`is kept once if the API is killed -9 ${when}, while it keeps it`, async () => {
      const { markerFile, ...options } = dieAt(folder, 'INSERT INTO simulated_message AS m', when);
      const config = { ...stack.config, port: await freePort() };
      const api = await startApiProcess(config, folder, options);
      const event = networkTransaction(`net_${when}`);
      await assert.rejects(send(event, config), /fetch failed/);
      await kill(api);
      assert.ok(existsSync(markerFile));
      assert.equal((await whyWaiting(stack, event.networkTransactionId)) !== null, isKept);
      const again = await send(event);
      assert.deepEqual([again.status, again.json.messageId], [202, event.networkTransactionId]);
      assert.equal(await whyWaiting(stack, event.networkTransactionId), 'card_unknown');
    });
  }

  for (const [text, when, isBooked] of [
    ['UPDATE "network_inbox" q', 'after', false],
    ['INSERT INTO card_transaction', 'after', false],
    ['DELETE FROM network_inbox', 'after', false],
    ['DELETE FROM network_inbox', 'before commit', false],
    ['DELETE FROM network_inbox', 'after commit', true],
  ] as const) {
    it(`is booked once if the worker is killed -9 ${when} "${text.slice(0, 40)}"`, async () => {
      await stack.stopWorker();
      // The API's own worker issues it.
      const issued = await createCard(partner, { amount: 1_000 }, live);
      assert.equal(issued.status, 201, issued.text);
      const cardId: string = issued.json.id;
      const networkCardId = await networkIdOf(stack, cardId);
      await mistakeNetworkCard(stack, cardId);
      const event = networkTransaction(networkCardId);
      assert.equal((await send(event)).status, 202);

      const died = await startDyingWorker(stack.config, folder, text, when);
      await identify(cardId, networkCardId);
      await died();
      assert.equal((await list(cardId)).length, isBooked ? 1 : 0);

      await asOwner(stack, "UPDATE network_inbox SET retry_after = '-infinity'", []);
      await stack.startWorker();
      await until('it is booked', async () => (await whyWaiting(stack, event.networkTransactionId)) === null);
      const [made, ...others] = await list(cardId);
      assert.deepEqual([made.card_balance_after, others], [900, []]);
      assert.deepEqual((await send(event)).json, { transactionId: made.id });
    });
  }
});
