import assert from 'node:assert/strict';
import { setCurrentProduct } from '../../cards/products.ts';
import {
  CardNetworkUnavailable,
  type IssueCardRequest,
  type TransferAsked,
  TurnMissed,
} from '../../issuers/card-network.ts';
import { issueCardWorkflowId } from '../../workflows/messages.ts';
import { createCard, readCardRow } from '../support/cards.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { TEST_PRODUCT, type TestPartner, type TestStack } from '../support/stack.ts';
import { transfer } from '../support/transfers.ts';
import { startUnrulyStack, type UnrulyNetwork } from '../support/unruly-network.ts';
import { until } from '../support/until.ts';

/** The network has seen the request, and answers 503 to the first three. */
const SEEN_CENTS = 10_048;

async function liveCard(partner: TestPartner): Promise<string> {
  const { status, json, text } = await createCard(partner, { amount: 10_000 }, { mode: 'live' });
  assert.equal(status, 201, text);
  return json.id;
}

describe('while the card network does not answer', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let network: UnrulyNetwork;
  before(async () => {
    ({ stack, network } = await startUnrulyStack(60_000));
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  describe('a request that the network has seen but not accepted', () => {
    let asked: (IssueCardRequest | TransferAsked)[];
    /** Happens after the network's first answer. */
    let meanwhile: () => Promise<unknown>;

    async function record<Answer>(
      ask: () => Promise<Answer>,
      request: IssueCardRequest | TransferAsked,
    ): Promise<Answer> {
      asked.push(request);
      try {
        return await ask();
      } finally {
        if (asked.length === 1) await meanwhile();
      }
    }

    beforeEach(() => {
      asked = [];
      meanwhile = async () => {};
      network.issuances = record;
      network.transfers = record;
    });
    afterEach(() => {
      network.issuances = (ask) => ask();
      network.transfers = (ask) => ask();
    });

    /** Asserts that the network was asked several times, with the same request each time. */
    function assertSame(): void {
      assert.ok(asked.length > 1);
      for (const again of asked) assert.deepEqual(again, asked[0]);
    }

    it("is repeated as it was, although the product's BIN and issuer's reference have changed", async () => {
      meanwhile = () =>
        setCurrentProduct(stack.operator, { ...TEST_PRODUCT, bin: '454545', issuerProduct: 'program_2' });
      const names = { cardholder_first_name: 'Ada', cardholder_last_name: 'Lovelace' };
      const { status, json, text } = await createCard(
        partner,
        { amount: SEEN_CENTS, ...names },
        { mode: 'live' },
      );
      await setCurrentProduct(stack.operator, TEST_PRODUCT);
      assert.equal(status, 201, text);
      assertSame();
      assert.deepEqual(asked[0], {
        token: json.id,
        productCode: TEST_PRODUCT.code,
        bin: TEST_PRODUCT.bin,
        amountCents: SEEN_CENTS,
        cardholderName: 'Ada Lovelace',
        issuerProduct: null,
      });
      await assertBalance(stack, partner, 'live', { spentCents: priceOf(SEEN_CENTS), heldCents: 0 });
    });

    it("is repeated as it was, although the card's network id has been corrected", async () => {
      const card = await createCard(partner, { amount: 10_000 }, { mode: 'live' });
      assert.equal(card.status, 201, card.text);
      asked = [];
      const giveId = (networkCardId: string) =>
        asOwner(stack, 'UPDATE card SET network_card_id = $1 WHERE id = $2', [networkCardId, card.json.id]);
      meanwhile = () => giveId('another');
      const topUp = await transfer('topup', { partner, mode: 'live', cardId: card.json.id }, SEEN_CENTS);
      assert.equal(topUp.status, 201, topUp.text);
      assertSame();
    });

    it("is not sent again as long as what it was sent to is another card's", async () => {
      const [card, other] = [await liveCard(partner), await liveCard(partner)];
      const id = (await readCardRow(stack, card))?.network_card_id ?? '';
      const giveId = (networkCardId: string, cardId: string) =>
        asOwner(stack, 'UPDATE card SET network_card_id = $1 WHERE id = $2', [networkCardId, cardId]);
      network.transfers = async (ask, request) => {
        asked.push(request);
        if (asked.length > 1) return ask();
        await giveId('unknown', card);
        await giveId(id, other);
        throw new CardNetworkUnavailable('card network: it answered 503, in a test');
      };
      asked = [];
      const withdrawal = transfer('withdrawal', { partner, mode: 'live', cardId: card }, 500);
      const problems = 'SELECT network_problem AS problem FROM idempotency_claim WHERE card_id = $1';
      await until('it says why it is not sent', async () => {
        const claims = await asOwner<{ problem: string | null }>(stack, problems, [card]);
        return claims.some(({ problem }) => problem?.startsWith('nothing was sent'));
      });
      assert.equal(asked.length, 1);
      await giveId('nobody', other);
      await giveId(id, card);
      assert.equal((await withdrawal).status, 201);
      assertSame();
    });

    it("keeps its cardholder's name until the network has decided", async () => {
      const names = { cardholder_first_name: 'Ada', cardholder_last_name: 'Lovelace' };
      const rename = (cardId: string) =>
        asOwner(stack, 'UPDATE card SET cardholder_last_name = NULL WHERE id = $1', [cardId]);
      const pending = await createCard(partner, { amount: 10_047, ...names }, { mode: 'live' });
      assert.equal(pending.status, 202, pending.text);
      await assert.rejects(rename(pending.json.id), { constraint: 'card_name_asked' });
      const active = await createCard(partner, { amount: 10_000, ...names }, { mode: 'live' });
      await rename(active.json.id);
      assert.equal((await readCardRow(stack, active.json.id))?.cardholder_last_name, null);
    });
  });

  it('asks again for what had no turn, in one activity, and looks up nothing that was not sent', async () => {
    let asked = 0;
    network.issuances = (ask) => {
      asked += 1;
      return asked <= 3 ? Promise.reject(new TurnMissed()) : ask();
    };
    network.lookedUp = [];
    const { status, json, text } = await createCard(partner, { amount: 10_000 }, { mode: 'live' });
    network.issuances = (ask) => ask();
    assert.equal(status, 201, text);
    assert.deepEqual([asked, network.lookedUp], [4, []]);
    const workflow = stack.client.workflow.getHandle(issueCardWorkflowId(json.id));
    const { events } = await workflow.fetchHistory();
    const scheduled = events?.filter((event) => event.activityTaskScheduledEventAttributes != null);
    assert.equal(scheduled?.length, 1);
  });

  describe('an operation whose network is silent', () => {
    const ask = async (path: string, body: object | undefined, idempotencyKey: string) => {
      const answer = await partner.call('POST', path, { mode: 'live', body, idempotencyKey });
      assert.ok(answer.status < 300, answer.text);
    };
    // biome-ignore lint/suspicious/noExplicitAny: an operation as the API returns it.
    const untilIts = async (key: string, is: (operation: any) => boolean): Promise<any> =>
      until(`the operation of ${key} is so`, async () => {
        const { json } = await partner.call('GET', `/operations?idempotency_key=${key}`, { mode: 'live' });
        return json.data.length === 1 && is(json.data[0]) && json.data[0];
      });
    it('says that it is being asked before it answers, and counts that once', async () => {
      const [cardId, frozenId] = [await liveCard(partner), await liveCard(partner)];
      const gate = Promise.withResolvers<void>();
      network.transfers = (request) => gate.promise.then(request);
      network.usual = (request) => gate.promise.then(request);
      const startedAt = new Date().toISOString();
      const requests = [
        ask(`/cards/${cardId}/topups`, { amount: 1_000 }, 'top-up'),
        ask(`/cards/${cardId}/withdrawals`, { amount: 1_000 }, 'withdrawal'),
        ask(`/cards/${frozenId}/freeze`, undefined, 'freeze'),
      ];
      const keys = ['top-up', 'withdrawal', 'freeze'];
      for (const key of keys) {
        const { network: shown } = await untilIts(key, (operation) => operation.network.asked > 0);
        assert.deepEqual([shown.asked, shown.last_answer, shown.next_ask_at], [1, null, null], key);
        assert.ok(shown.last_asked_at >= startedAt && shown.last_asked_at <= new Date().toISOString());
        assert.equal(shown.deadline === null, key === 'freeze');
      }
      gate.resolve();
      await Promise.all(requests);
      for (const key of keys) {
        const { network: shown } = await untilIts(key, ({ status }) => status === 'completed');
        assert.deepEqual([shown.asked, shown.last_answer, shown.next_ask_at], [1, 'succeeded', null], key);
      }
    });
  });
});
