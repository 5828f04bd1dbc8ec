import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { FakeLithic } from '../../../dev/lithic/fake-lithic.ts';
import { type Card, makeAuthorizationRequest, makeTransaction } from '../../../dev/lithic/objects.ts';
import { AUTHORIZATIONS_PATH } from '../../../issuers/lithic/wire.ts';
import { signStandardWebhook } from '../../../issuers/standard-webhooks.ts';
import {
  ASA_SECRET,
  allTaken,
  enrol,
  lithicCard,
  startLithicStack,
  WEBHOOK_SECRET,
} from '../../support/adapters/lithic.ts';
import { moveRevealsBack, reveal, revealingPartner } from '../../support/api/reveals.ts';
import { createCard, settledCard } from '../../support/cards.ts';
import { inboxRead } from '../../support/inbox.ts';
import { assertLedgerClean } from '../../support/money.ts';
import { cardMoney } from '../../support/operation-kinds.ts';
import { connectTo, ownerUrlOf } from '../../support/postgres.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { assertKeptNowhere } from '../../support/stored-data.ts';

const live = { mode: 'live' } as const;

describe('live mode at Lithic', () => {
  let fake: FakeLithic;
  let stack: TestStack;
  let stop: () => Promise<void>;
  let partner: TestPartner;
  let cardId: string;
  let card: Card;
  before(async () => {
    ({ fake, stack, stop } = await startLithicStack({ logLevel: 'trace' }));
    partner = await revealingPartner(stack);
  });
  beforeEach(async () => {
    const { program } = fake;
    program.sendsEventTokens = false;
    program.standsIn = false;
    program.posts.holdsEvents = false;
    program.posts.isDeaf = false;
    enrol(fake, stack);
    cardId = (await createCard(partner, { amount: 1_000 }, live)).json.id;
    card = await lithicCard(fake, stack, cardId);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stop();
  });

  const money = () => cardMoney({ partner, mode: 'live', cardId });
  const list = async (what: 'transactions' | 'authorizations') =>
    (await partner.call('GET', `/cards/${cardId}/${what}`, live)).json.data;
  /** Oldest first. */
  const transactions = async () =>
    (await list('transactions'))
      .reverse()
      .map(({ type, amount }: { type: string; amount: number }) => [type, amount]);
  const authorization = async () => {
    const [only, ...others] = await list('authorizations');
    assert.deepEqual(others, []);
    return only;
  };
  const told = () => allTaken(fake, stack);

  /** Asks with the bytes of a request, as Lithic does. */
  async function ask(
    request: object,
    { id = `msg_${randomUUID()}`, secret = ASA_SECRET, at = Date.now() } = {},
  ): Promise<{ status: number; body: unknown }> {
    const body = JSON.stringify(request);
    const timestamp = String(Math.floor(at / 1_000));
    const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
    const response = await fetch(`http://${stack.config.host}:${stack.config.port}${AUTHORIZATIONS_PATH}`, {
      method: 'POST',
      headers: {
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': signStandardWebhook({ id, timestamp }, body, key),
      },
      body,
    });
    return { status: response.status, body: await response.json() };
  }
  const request = (amount: number, on = card) => {
    const asked = { amount, status: 'AUTHORIZATION', eventToken: null } as const;
    return makeAuthorizationRequest(makeTransaction(on, {}, new Date()), on, asked);
  };

  describe('decisions', () => {
    it('are made by the available balance', async () => {
      assert.equal((await fake.program.authorize({ card, amount: 700 })).result, 'APPROVED');
      assert.deepEqual(await money(), [1_000, 300]);
      assert.equal((await fake.program.authorize({ card, amount: 301 })).result, 'INSUFFICIENT_FUNDS');
      assert.deepEqual(await money(), [1_000, 300]);
    });

    it('are the same for a request that is repeated, twenty times at once, and hold once', async () => {
      const repeated = request(300);
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => ask(repeated, { id: 'msg_repeated' })),
      );
      for (const answer of answers) {
        assert.deepEqual(answer, { status: 200, body: { token: repeated.token, result: 'APPROVED' } });
      }
      assert.deepEqual(await money(), [1_000, 700]);
    });

    it('decline a card that we do not know, and a message id that was used for something else', async () => {
      const unknown = request(100, { ...card, token: randomUUID() });
      assert.deepEqual(await ask(unknown), {
        status: 200,
        body: { token: unknown.token, result: 'CARD_PAUSED' },
      });
      assert.ok(
        stack.logLines.some((line) => line.includes(unknown.token) && line.includes('card_not_found')),
      );
      const id = `msg_${randomUUID()}`;
      const first = request(100);
      await ask(first, { id });
      const other = { ...request(200), token: first.token };
      assert.deepEqual(await ask(other, { id }), {
        status: 200,
        body: { token: other.token, result: 'DECLINED' },
      });
    });

    it('decline a card that stays locked, however many are asked about, while Lithic still listens', async () => {
      await using owner = await connectTo(ownerUrlOf(stack.config.databaseUrl));
      await owner.query('BEGIN');
      await owner.query('SELECT FROM card WHERE id = $1 FOR UPDATE', [cardId]);
      // Three times as many as the account has turns at the database.
      const locked = Array.from({ length: 12 }, () => request(100));
      assert.deepEqual(
        await Promise.all(locked.map((one) => ask(one))),
        locked.map(({ token }) => ({ status: 200, body: { token, result: 'DECLINED' } })),
      );
      assert.deepEqual(await money(), [1_000, 1_000]);
    });

    it("are not made for anybody else: another secret, the events' secret, an old request", async () => {
      for (const wrong of [
        { secret: `whsec_${Buffer.alloc(24, 9).toString('base64')}` },
        { secret: WEBHOOK_SECRET },
        { at: Date.now() - 320_000 },
        { at: Date.now() + 320_000 },
      ]) {
        assert.equal((await ask(request(100), wrong)).status, 401);
      }
      assert.deepEqual(await money(), [1_000, 1_000]);
    });
  });

  for (const sendsEventTokens of [false, true]) {
    describe(`told of ${sendsEventTokens ? 'with' : 'without'} event tokens in requests`, () => {
      beforeEach(() => {
        fake.program.sendsEventTokens = sendsEventTokens;
      });

      it('change nothing about what we have decided', async () => {
        const { token } = await fake.program.authorize({ card, amount: 300 });
        await fake.program.increment(token, 200);
        await fake.program.authorize({ card, amount: 2_000 });
        await told();
        assert.deepEqual(await money(), [1_000, 500]);
        assert.deepEqual(await transactions(), [['decline', 2_000]]);
        const listed = await list('authorizations');
        assert.deepEqual(
          listed.map(({ status, amount }: { status: string; amount: number }) => [status, amount]),
          [
            ['declined', 2_000],
            ['pending', 500],
          ],
        );
      });

      it('give back what we approved and Lithic declined, because our answer came too late', async () => {
        fake.program.posts.isDeaf = true;
        const late = await fake.program.authorize({ card, amount: 300 });
        assert.deepEqual(late.events[0]?.detailed_results, ['CUSTOMER_ASA_TIMEOUT']);
        await told();
        assert.deepEqual(await money(), [1_000, 1_000]);
        assert.deepEqual(await transactions(), [['decline', 300]]);
      });
    });
  }

  it('give refunds, and take them back, whatever the card has', async () => {
    const { program } = fake;
    const refund = program.begin(card, {}, { type: 'RETURN', amount: 200, polarity: 'CREDIT' });
    await told();
    assert.deepEqual(await money(), [1_200, 1_200]);
    await program.authorize({ card, amount: 1_150 });
    program.record(refund, { type: 'RETURN_REVERSAL', amount: 200 });
    await told();
    assert.deepEqual(await money(), [1_150, 0]);
    assert.deepEqual(await transactions(), [
      ['refund', 200],
      ['purchase', 200],
    ]);
  });

  it('end the same if their events come twice, late, and in another order', async () => {
    const { program } = fake;
    program.posts.holdsEvents = true;
    const first = program.posts.events.length;
    const transaction = await program.authorize({ card, amount: 500 });
    program.record(transaction, { type: 'CLEARING', amount: 200 });
    program.record(transaction, { type: 'AUTHORIZATION_REVERSAL', amount: 100 });
    program.record(transaction, { type: 'CLEARING', amount: 200 });
    const events = program.posts.events.slice(first);
    for (const event of [3, 0, 2, 1, 3, 0, 1, 2]) {
      assert.equal(await program.posts.send(events[event] as (typeof events)[number]), 200);
      await inboxRead(stack);
    }
    assert.deepEqual(await money(), [600, 600]);
    assert.deepEqual(await transactions(), [
      ['purchase', 200],
      ['purchase', 200],
    ]);
    assert.equal((await authorization()).status, 'closed');
  });

  it('show the details of their cards to the partner, and leave neither number nor CVV anywhere, whatever fails', async () => {
    const cardIds = [];
    for (const fault of [null, 'other shape', '500 after', 'malformed'] as const) {
      if (fault !== null) fake.faults.add({ fault, request: 'POST /v1/cards', times: 1 });
      const card = await settledCard(partner, (await createCard(partner, { amount: 1_000 }, live)).json.id);
      if (fault !== null) fake.faults.add({ fault, request: 'PATCH', times: 1 });
      assert.equal((await partner.call('POST', `/cards/${card.id}/freeze`, live)).status, 200);
      if (fault !== null) {
        fake.faults.add({ fault, request: 'GET /v1/cards', times: 1 });
        assert.equal((await reveal(partner, card.id, 'live')).status, 503);
      }
      cardIds.push(card.id);
    }
    const revealed = [];
    for (const cardId of cardIds) {
      const { pan, cvv } = await lithicCard(fake, stack, cardId);
      await moveRevealsBack(stack, partner, 90_000);
      const { status, json } = await reveal(partner, cardId, 'live');
      assert.deepEqual([status, json.pan, json.cvv], [200, pan, cvv]);
      revealed.push({ pan, cvv });
    }
    await assertKeptNowhere(stack, revealed);
  });
});
