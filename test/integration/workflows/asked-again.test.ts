import assert from 'node:assert/strict';
import { setCurrentProduct } from '../../../commands/products/products.ts';
import {
  CardNetworkUnavailable,
  type IssueCardRequest,
  type TopUpAsked,
} from '../../../domain/card-network.ts';
import { createCard, readCardRow } from '../../support/cards.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, TEST_PRODUCT, type TestPartner, type TestStack } from '../../support/stack.ts';
import { createTopUp } from '../../support/top-ups.ts';

/** The network has seen the request, and answers 503 to the first three. */
const SEEN_CENTS = 10_048;

describe('a request that the network has seen but not accepted', function () {
  this.timeout(120_000);
  let stack: TestStack;
  let partner: TestPartner;
  let asked: (IssueCardRequest | TopUpAsked)[];
  /** Happens after the network's first answer. */
  let meanwhile: () => Promise<unknown>;

  async function ask<Request extends IssueCardRequest | TopUpAsked, Answer>(
    request: Request,
    network: (request: Request) => Promise<Answer>,
  ): Promise<Answer> {
    asked.push(request);
    try {
      return await network(request);
    } finally {
      if (asked.length === 1) await meanwhile();
    }
  }

  before(async () => {
    stack = await startTestStack({}, { worker: false, hosted: false });
    await stack.startWorker({
      around: {
        activities: (same) => same,
        network: (network) => ({
          ...network,
          issueCard: (request) => ask(request, network.issueCard),
          topUpCard: (request) => ask(request, network.topUpCard),
        }),
      },
    });
  });
  beforeEach(async () => {
    asked = [];
    meanwhile = async () => {};
    partner = await fundedPartner(stack);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
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
    const topUp = await createTopUp(partner, 'live', card.json.id, SEEN_CENTS);
    assert.equal(topUp.status, 201, topUp.text);
    assertSame();
  });

  it('is repeated with the present BIN if a process of the last release made it', async () => {
    meanwhile = async () => {
      await asOwner(stack, 'UPDATE card SET asked = NULL WHERE id = $1', [asked[0]?.token]);
      throw new CardNetworkUnavailable('card network: no answer, in a test');
    };
    const { status, text } = await createCard(partner, { amount: SEEN_CENTS }, { mode: 'live' });
    assert.equal(status, 201, text);
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
