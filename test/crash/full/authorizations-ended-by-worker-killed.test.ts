import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { networkIdOf, sendAsNetwork } from '../../support/api/network-events.ts';
import { whyWaiting } from '../../support/api/why-waiting.ts';
import { authorizedCard, onAuthorization } from '../../support/authorizations.ts';
import { createCard, eventTypes } from '../../support/cards.ts';
import { scratchFolder, startDyingWorker } from '../../support/crash/processes.ts';
import { assertLedgerClean, balanceOf, fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;
const EVENTS = ['card.authorization.created', 'card.authorization.updated'];

/** Where a worker dies, and whether what it did took place. */
const PLACES = { 'before commit': false, 'after commit': true } as const;
type When = keyof typeof PLACES;

describe('an authorization that a worker ends', () => {
  let stack: TestStack;
  let partner: TestPartner;
  const folder = scratchFolder();
  before(async () => {
    stack = await startTestStack({ cardCreationWaitMs: 60_000 });
    await stack.stopWorker();
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  async function workUntilKilled(text: string, when: When): Promise<void> {
    await (await startDyingWorker(stack.config, folder, text, when))();
  }
  const workUntil = async (what: string, isSo: () => Promise<boolean>) => {
    await stack.startWorker();
    await until(what, isSo).finally(() => stack.stopWorker());
  };

  for (const [when, isExpired] of Object.entries(PLACES) as [When, boolean][]) {
    it(`expires once, with those of its account, when the worker is killed -9 ${when.replace(' commit', ' the COMMIT')}`, async () => {
      const [card, blocked] = [await authorizedCard(partner), await authorizedCard(partner)];
      const ids: string[] = [];
      for (const one of [card, card, blocked]) ids.push((await one.authorize(300)).json.id);
      await blocked.change('block');
      const before = (await balanceOf(partner))[2] ?? 0;
      const statuses = async () => {
        const read = await Promise.all(ids.map((id) => onAuthorization(partner, id).read()));
        return read.map(({ status }) => status);
      };
      await asOwner(
        stack,
        `UPDATE card_authorization SET expires_at = now() - interval '1 hour' WHERE id = ANY ($1)`,
        [ids],
      );
      await workUntilKilled('INSERT INTO card_authorization (', when);
      const left = isExpired ? 'expired' : 'pending';
      assert.deepEqual(await statuses(), [left, left, left]);
      assert.deepEqual(await card.money(), [1_000, isExpired ? 1_000 : 400]);

      await workUntil('they have expired', async () =>
        (await statuses()).every((status) => status === 'expired'),
      );
      assert.deepEqual(await card.money(), [1_000, 1_000]);
      assert.deepEqual(await blocked.money(), [0, 0]);
      assert.equal((await balanceOf(partner))[2], before + 300);
      const updated = async (cardId: string) =>
        (await eventTypes(stack, cardId)).filter((type) => type === 'card.authorization.updated').length;
      assert.deepEqual([await updated(card.id), await updated(blocked.id)], [2, 1]);
      assert.deepEqual(await card.transactions(), []);
    });
  }

  async function liveCard() {
    const { json, status, text } = await createCard(partner, { amount: 1_000 }, live);
    assert.equal(status, 201, text);
    const networkCardId = await networkIdOf(stack, json.id);
    const networkAuthorizationId = randomUUID();
    const about = { networkCardId, currency: 'USD' };
    const request = {
      ...about,
      type: 'authorization',
      amountCents: 300,
      networkTransactionId: networkAuthorizationId,
    };
    const reversal = {
      ...about,
      type: 'reversal',
      networkAuthorizationId,
      networkTransactionId: randomUUID(),
    };
    return { cardId: json.id as string, request, reversal };
  }
  const sendTo = (path: string, body: object) =>
    sendAsNetwork(stack, `/network/${path}`, JSON.stringify(body));

  for (const [when, isApplied] of Object.entries(PLACES) as [When, boolean][]) {
    it(`is reversed once by a kept reversal, when the worker is killed -9 ${when.replace(' commit', ' the COMMIT')}`, async () => {
      const { cardId, request, reversal } = await liveCard();
      assert.equal((await sendTo('transactions', reversal)).status, 202);
      const { authorizationId } = (await sendTo('authorizations', request)).json;
      const read = async () => (await partner.call('GET', `/authorizations/${authorizationId}`, live)).json;
      const makeDue = () =>
        asOwner(stack, "UPDATE network_inbox SET retry_after = '-infinity' WHERE id = $1", [
          reversal.networkAuthorizationId,
        ]);
      await makeDue();
      await workUntilKilled('DELETE FROM network_inbox', when);
      assert.equal((await read()).status, isApplied ? 'reversed' : 'pending');
      assert.equal((await whyWaiting(stack, reversal.networkTransactionId)) === null, isApplied);

      await makeDue();
      await workUntil('it is reversed', async () => (await read()).status === 'reversed');
      const repeated = await sendTo('transactions', reversal);
      assert.deepEqual([repeated.status, repeated.json], [200, { authorizationId }]);
      assert.equal(await whyWaiting(stack, reversal.networkTransactionId), null);
      const { json } = await partner.call('GET', `/cards/${cardId}`, live);
      assert.deepEqual([json.balance, json.available_balance], [1_000, 1_000]);
      assert.deepEqual((await eventTypes(stack, cardId)).slice(-2), EVENTS);
    });
  }
});
