import assert from 'node:assert/strict';
import { TRANSFER_DIRECTIONS, TRANSFERS } from '../../../../domain/transfer.ts';
import { type CardNetwork, CardNetworkUnavailable, TurnMissed } from '../../../../issuers/card-network.ts';
import { DECISION_EVENT } from '../../../../issuers/increase/wire.ts';
import { newId } from '../../../../platform/crypto/new-id.ts';
import { madeFor, orderCard, startIncreaseClient, toArray } from '../../../support/adapters/increase.ts';
import { readable } from '../../../support/adapters/readable.ts';

const HOUR_MS = 3_600_000;

describe("Increase's client", () => {
  let increase: Awaited<ReturnType<typeof startIncreaseClient>>;
  let client: CardNetwork;
  beforeEach(async () => {
    increase = await startIncreaseClient();
    client = increase.client;
  });
  afterEach(() => increase.stop());

  async function issue(amountCents = 5_000) {
    const order = orderCard(amountCents);
    const answer = await client.issueCard(order);
    assert.ok(answer.status === 'issued');
    return { ...order, networkCardId: answer.networkCardId };
  }

  describe('issues a card', () => {
    it("with an account of its own and the money on it, under keys made of our id, and without the cardholder's name", async () => {
      const order = orderCard(5_000);
      const answer = await client.issueCard(order);
      const { cards } = increase.fake.bank.books;
      assert.deepEqual(answer, {
        status: 'issued',
        networkCardId: cards[0]?.id,
        last4: cards[0]?.last4,
        expMonth: cards[0]?.expiration_month,
        expYear: cards[0]?.expiration_year,
      });
      const { token } = order;
      assert.deepEqual(Object.keys(increase.fake.bank.books.keys), [
        `${token}/account`,
        `${token}/card`,
        `${token}/transfer`,
      ]);
      assert.deepEqual(madeFor(increase.fake, token), {
        accounts: 1,
        cards: ['active'],
        transfers: ['complete'],
        cents: 5_000,
      });
      assert.deepEqual(await client.lookUpIssuance(token), answer);
      assert.ok(!JSON.stringify(increase.fake.bank.books).includes('Lovelace'));
    });

    it("for the configured entity, and in the product's program or else the configured one", async () => {
      const configured = await startIncreaseClient({ programId: 'program_0', entityId: 'entity_0' });
      try {
        for (const [issuerProduct, programId] of [
          ['program_1', 'program_1'],
          [null, 'program_0'],
        ] as const) {
          await configured.client.issueCard({ ...orderCard(), issuerProduct });
          const { program_id, entity_id } = configured.fake.bank.books.accounts.at(-1) ?? {};
          assert.deepEqual([program_id, entity_id], [programId, 'entity_0']);
        }
      } finally {
        await configured.stop();
      }
    });

    for (const [decide, end, cards] of [
      ['approve', 'issued', ['active']],
      ['cancel', 'failed', ['canceled']],
    ] as const) {
      it(`which is accepted while the transfer waits for an approval, and ${end} after "${decide}"`, async () => {
        const { bank } = increase.fake;
        bank.transfersNeedApproval = true;
        const order = orderCard();
        assert.equal((await client.issueCard(order)).status, 'accepted');
        assert.equal((await client.lookUpIssuance(order.token)).status, 'accepted');
        bank[decide](bank.books.transfers[0]?.id ?? '');
        for (let asked = 0; asked < 2; asked++) {
          assert.equal((await client.issueCard(order)).status, end);
          assert.deepEqual(madeFor(increase.fake, order.token).cards, cards);
          assert.equal((await client.lookUpIssuance(order.token)).status, end);
        }
      });
    }
  });

  describe('is refused', () => {
    it('a card if the funding account has too little, for good, and cancels the card that was made', async () => {
      const order = orderCard(2_000_000_000);
      assert.deepEqual(await client.issueCard(order), {
        status: 'declined',
        reason: 'invalid_operation_error',
      });
      assert.deepEqual(madeFor(increase.fake, order.token), {
        accounts: 1,
        cards: ['canceled'],
        transfers: [],
        cents: 0,
      });
      assert.ok(increase.logLines.some((line) => line.includes('invalid_operation_error')));
      assert.ok(!increase.logLines.some((line) => line.includes('Some detail')));
      increase.fake.bank.pay(increase.fake.fundingAccountId, 5_000_000_000);
      assert.equal((await client.issueCard(order)).status, 'declined');
      assert.equal((await client.lookUpIssuance(order.token)).status, 'declined');
      assert.deepEqual(madeFor(increase.fake, order.token).transfers, []);
    });

    it('for good also if the answer to the cancellation was lost', async () => {
      const order = orderCard(2_000_000_000);
      increase.fake.faults.add({ fault: 'lost after acting', request: 'PATCH', times: 1 });
      await assert.rejects(client.issueCard(order), CardNetworkUnavailable);
      increase.fake.bank.pay(increase.fake.fundingAccountId, 5_000_000_000);
      assert.equal((await client.lookUpIssuance(order.token)).status, 'declined');
      assert.equal((await client.issueCard(order)).status, 'declined');
      assert.deepEqual(madeFor(increase.fake, order.token).transfers, []);
    });

    it('nothing if there is a transfer all the same: a canceled card with its money is issued', async () => {
      const { token, networkCardId } = await issue();
      increase.fake.bank.setStatus(networkCardId, 'canceled');
      const order = { ...orderCard(), token };
      assert.equal((await client.issueCard(order)).status, 'issued');
      assert.equal((await client.lookUpIssuance(token)).status, 'issued');
    });

    it('nothing by an error that a repetition of a successful request gets', async () => {
      const order = orderCard();
      await client.issueCard(order);
      // The key's arguments are others now, as if the configuration had changed.
      assert.equal((await client.issueCard({ ...order, issuerProduct: 'program_2' })).status, 'issued');
      assert.deepEqual(madeFor(increase.fake, order.token).transfers, ['complete']);
    });
  });

  it('takes an object under its key for its own only if it is what was asked for', async () => {
    const { networkCardId } = await issue();
    const asked = { token: newId('topup'), direction: 'topup', networkCardId, amountCents: 700 } as const;
    await client.transfer(asked);
    await assert.rejects(client.transfer({ ...asked, amountCents: 800 }), CardNetworkUnavailable);
  });

  describe('after NETWORK_KEY_LIFETIME', () => {
    it('finds what was made before, and makes no second object although Increase may have forgotten the key', async () => {
      const young = orderCard();
      increase.fake.faults.add({ fault: 'lost after acting', request: 'POST /account_transfers', times: 1 });
      await assert.rejects(client.issueCard(young), CardNetworkUnavailable);
      increase.fake.bank.aheadMs = 25 * HOUR_MS;
      increase.clock.aheadMs = 21 * HOUR_MS;
      await assert.rejects(client.issueCard(young), /NETWORK_KEY_LIFETIME/);
      assert.equal((await client.lookUpIssuance(young.token)).status, 'issued');
      const { accounts, cards, transfers } = madeFor(increase.fake, young.token);
      assert.deepEqual([accounts, cards.length, transfers.length], [1, 1, 1]);
    });

    it('cancels the card if its transfer turns out to be canceled, unless an operator has put it to use', async () => {
      const { bank, faults } = increase.fake;
      bank.transfersNeedApproval = true;
      const [order, inUse] = [orderCard(), orderCard()];
      for (const one of [order, inUse]) assert.equal((await client.issueCard(one)).status, 'accepted');
      for (const { id } of bank.books.transfers) bank.cancel(id);
      increase.clock.aheadMs = 21 * HOUR_MS;
      await assert.rejects(client.issueCard(order), /NETWORK_KEY_LIFETIME/);

      faults.add({ fault: 'lost before acting', request: 'PATCH', times: 1 });
      await assert.rejects(client.lookUpIssuance(order.token), CardNetworkUnavailable);
      for (let asked = 0; asked < 2; asked++)
        assert.equal((await client.lookUpIssuance(order.token)).status, 'failed');
      assert.deepEqual(madeFor(increase.fake, order.token).cards, ['canceled']);

      increase.ours.isInUse = true;
      assert.equal((await client.lookUpIssuance(inUse.token)).status, 'failed');
      assert.deepEqual(madeFor(increase.fake, inUse.token).cards, ['active']);
    });

    it('sends nothing of an issuance before it has the turns of all its requests', async () => {
      const order = orderCard();
      let left = 2;
      increase.turns.wait = async (requests) => {
        if (requests > left) throw new TurnMissed();
        left -= requests;
      };
      await assert.rejects(client.issueCard(order), TurnMissed);
      assert.deepEqual([increase.fake.requests, left], [[], 2]);
      left = 3;
      assert.equal((await client.issueCard(order)).status, 'issued');
      assert.deepEqual([increase.fake.requests.length, left], [3, 0]);
    });

    it('sends no key that has become too old while its request waited for its turn', async () => {
      increase.turns.wait = async () => {
        increase.clock.aheadMs = 21 * HOUR_MS;
      };
      await assert.rejects(client.issueCard(orderCard()), /NETWORK_KEY_LIFETIME/);
      assert.deepEqual(increase.fake.requests, []);
    });
  });

  describe('moves money', () => {
    for (const direction of TRANSFER_DIRECTIONS) {
      const { idPrefix, noun } = TRANSFERS[direction];
      it(`of a ${noun} later, if it waits for an approval, or not at all`, async () => {
        const { networkCardId } = await issue();
        increase.fake.bank.transfersNeedApproval = true;
        for (const [decide, end] of [
          ['approve', 'succeeded'],
          ['cancel', 'failed'],
        ] as const) {
          const asked = { token: newId(idPrefix), direction, networkCardId, amountCents: 700 };
          assert.deepEqual(await client.transfer(asked), { status: 'accepted' });
          increase.fake.bank[decide](increase.fake.bank.books.transfers.at(-1)?.id ?? '');
          assert.equal((await client.transfer(asked)).status, end);
          assert.equal((await client.lookUpTransfer(asked)).status, end);
        }
      });

      it(`of a ${noun} not at all if there is too little`, async () => {
        const { networkCardId } = await issue();
        const asked = { token: newId(idPrefix), direction, networkCardId, amountCents: 3_000_000_000 };
        assert.deepEqual(await client.transfer(asked), {
          status: 'declined',
          reason: 'invalid_operation_error',
        });
        assert.deepEqual(await client.lookUpTransfer(asked), { status: 'unknown' });
      });
    }
  });

  it('is refused a change of status that Increase forbids', async () => {
    const { networkCardId } = await issue();
    const change = (cardStatus: 'active' | 'blocked') =>
      client.changeCardStatus({ token: newId('claim'), networkCardId, cardStatus });
    for (let asked = 0; asked < 2; asked++) assert.deepEqual(await change('blocked'), { status: 'applied' });
    assert.equal(increase.fake.bank.card(networkCardId).status, 'canceled');
    assert.deepEqual(await change('active'), { status: 'refused', reason: 'invalid_operation_error' });
  });

  it('sends no change of status that is not under way any more, since a newer one may have been made', async () => {
    const { networkCardId } = await issue();
    increase.underWay.isUnderWay = false;
    const change = { token: newId('claim'), networkCardId, cardStatus: 'frozen' } as const;
    await assert.rejects(client.changeCardStatus(change), CardNetworkUnavailable);
    assert.ok(!increase.fake.requests.some((request) => request.startsWith('PATCH')));
  });

  it('reveals a card without its PIN', async () => {
    const { token, networkCardId } = await issue();
    const details = await client.revealCard({ cardId: token, networkCardId });
    assert.deepEqual(Object.keys(details), ['pan', 'cvv', 'expMonth', 'expYear']);
    assert.match(details.pan, /^424242\d{10}$/);
  });

  it('puts nothing that it received into its errors', async () => {
    const { token, networkCardId } = await issue();
    for (const fault of ['not JSON', 'other shape'] as const) {
      increase.fake.faults.add({ fault, request: 'details', times: 1 });
      const error = await client
        .revealCard({ cardId: token, networkCardId })
        .catch((thrown: unknown) => thrown);
      assert.ok(error instanceof CardNetworkUnavailable);
      assert.ok(!`${error.message} ${error.cause} ${error.stack}`.includes('424242'), error.message);
    }
  });

  describe('lists', () => {
    it('cards and movements since a time, page after page, oldest first', async () => {
      const before = new Date(Date.now() - 3 * HOUR_MS);
      increase.fake.bank.aheadMs = -2 * HOUR_MS;
      const first = await issue();
      increase.fake.bank.aheadMs = 0;
      const orders = [];
      for (let count = 0; count < 101; count++) orders.push(await issue(100));
      const { token, networkCardId } = first;
      const topUp = { token: newId('topup'), direction: 'topup', networkCardId, amountCents: 700 } as const;
      await client.transfer(topUp);
      await client.changeCardStatus({ token: newId('claim'), networkCardId, cardStatus: 'frozen' });

      const cards = await toArray(readable(client.listCards(before)));
      assert.equal(cards.length, 102);
      assert.deepEqual(cards[0], { networkCardId, token, status: 'frozen' });
      const recent = await toArray(readable(client.listCards(new Date(Date.now() - HOUR_MS))));
      assert.equal(recent.length, 101);

      const movements = await toArray(readable(client.listMovements(before)));
      assert.equal(movements.length, 103);
      const { networkMovementId: _, ...oldest } = movements[0] ?? { networkMovementId: '' };
      assert.deepEqual(oldest, { kind: 'issuance', token, amountCents: 5_000, status: 'succeeded' });
      assert.ok(movements.some(({ kind, token }) => kind === 'topup' && token === topUp.token));
    });

    it("movements that we did not ask for, if the account is a card's", async () => {
      const { networkCardId } = await issue();
      const { bank, fundingAccountId } = increase.fake;
      const other = bank.openAccount({ name: 'Rent' }, null);
      const transfer = { account_id: fundingAccountId, amount: 300, description: 'by hand' };
      bank.transfer({ ...transfer, destination_account_id: other.id }, null);
      bank.transfer({ ...transfer, destination_account_id: bank.card(networkCardId).account_id }, null);
      const movements = await toArray(readable(client.listMovements(new Date(Date.now() - 60_000))));
      assert.deepEqual(
        movements.map(({ kind, token, amountCents }) => ({ kind, token, amountCents })),
        [
          { kind: 'issuance', token: movements[0]?.token, amountCents: 5_000 },
          { kind: 'topup', token: null, amountCents: 300 },
        ],
      );
    });
  });

  describe('checks how Increase is set up', () => {
    it('and finds nothing wrong with both subscriptions', async () => {
      increase.fake.subscribe('https://cards.example/network/increase/events', 'secret');
      assert.deepEqual(await client.checkSetUp(), []);
    });

    it('and finds that Increase would not ask, over a subscription that is for more than decisions', async () => {
      const url = 'https://cards.example/network/increase/events';
      increase.fake.subscribe(url, 'secret', { asksForDecisions: false });
      const { subscriptions } = increase.fake.bank.books;
      const [first] = subscriptions;
      assert.ok(first);
      const select = (...categories: ('card_payment.created' | typeof DECISION_EVENT)[]) => {
        const selected = categories.map((event_category) => ({ event_category }));
        subscriptions[1] = { ...first, id: 'event_subscription_2', selected_event_categories: selected };
      };
      select('card_payment.created', DECISION_EVENT);
      const [problem, ...others] = await client.checkSetUp();
      assert.match(problem ?? '', /real_time_decision\.card_authorization_requested alone/);
      assert.deepEqual(others, []);
      select(DECISION_EVENT);
      assert.deepEqual(await client.checkSetUp(), []);
    });

    it('and names a subscription that is missing', async () => {
      increase.fake.subscribe('https://cards.example/elsewhere', 'secret');
      const [events = '', decisions = ''] = await client.checkSetUp();
      assert.match(events, /card_payment\.created/);
      assert.match(decisions, /real_time_decision\.card_authorization_requested/);
    });

    it('and says that it can not tell if Increase refuses the key', async () => {
      increase.fake.faults.add({ fault: 'unauthorized' });
      await assert.rejects(client.checkSetUp(), /INCREASE_API_KEY/);
    });
  });
});
