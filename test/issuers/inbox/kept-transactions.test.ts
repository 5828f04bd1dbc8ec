import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { MAX_WAITING_MESSAGES } from '../../../issuers/inbox/kept-messages.ts';
import { expectError } from '../../support/api/answers.ts';
import { keptRows } from '../../support/api/kept-transactions.ts';
import { networkIdOf, networkTransaction, sendAsNetwork } from '../../support/api/network-events.ts';
import { createCard, forgetNetworkCard } from '../../support/cards.ts';
import { assertLedgerClean, balanceOf, fundedPartner } from '../../support/money.ts';
import { environmentOf, type Operate, operateIn } from '../../support/operator/operate.ts';
import { NEVER_FINISHES } from '../../support/operator/resolving.ts';
import { asOwner } from '../../support/postgres.ts';
import { type Answer, startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;

describe('a transaction of the network that can not be booked', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let operate: Operate;
  /** Called when the network has issued a card, before we know it. */
  let whenIssued: (networkCardId: string) => Promise<void> = async () => {};
  before(async () => {
    stack = await startTestStack({ issuanceDeadlineMs: 1_000 }, { worker: false });
    await stack.startWorker({
      around: {
        activities: (same) => same,
        network: (network) => ({
          ...network,
          issueCard: async (request) => {
            const answer = await network.issueCard(request);
            if (answer.status === 'issued') await whenIssued(answer.networkCardId);
            return answer;
          },
        }),
      },
    });
    operate = operateIn(environmentOf(stack.config));
    partner = await fundedPartner(stack);
  });
  afterEach(() => {
    whenIssued = async () => {};
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  const send = (body: object): Promise<Answer> =>
    sendAsNetwork(stack, '/network/transactions', JSON.stringify(body));
  const list = async (cardId: string) =>
    (await partner.call('GET', `/cards/${cardId}/transactions`, live)).json.data;
  const issue = async () => (await createCard(partner, { amount: 1_000 }, live)).json.id as string;
  const itemOf = async (id: string) =>
    (await operate('attention', 'list')).json.find((item: { id: string }) => item.id === id);

  /** Sends it and holds the answer to "kept". @returns the message's id */
  async function keep(body: object): Promise<string> {
    const { status, json, text } = await send(body);
    assert.deepEqual([status, json.status], [202, 'kept'], text);
    assert.match(json.messageId, /^nmsg_/);
    return json.messageId;
  }

  /** The newest entry of the audit log. */
  const audited = async () => (await operate('audit', 'list')).json[0];

  async function failedByHand(): Promise<string> {
    const { json, ...answer } = await createCard(partner, { amount: NEVER_FINISHES }, live);
    assert.equal(answer.status, 202, answer.text);
    await until('it is overdue', () => itemOf(json.id));
    const resolved = await operate('card', 'resolve', json.id, '--failed', '--reason', 'by telephone');
    assert.deepEqual([resolved.code, resolved.json?.status], [0, 'failed'], resolved.err);
    return json.id;
  }

  it("is booked once its card is active, if it came between the network's yes and our commit", async () => {
    let event: Record<string, unknown> = {};
    whenIssued = async (networkCardId) => {
      event = networkTransaction(networkCardId);
      await keep(event);
      await keep(event);
    };
    const cardId = await issue();
    const [made] = await until('it is booked', async () => {
      const found = await list(cardId);
      return found.length > 0 && found;
    });
    assert.deepEqual([made.type, made.amount, made.card_balance_after], ['purchase', 100, 900]);
    const repeated = await send(event);
    assert.deepEqual([repeated.status, repeated.json], [200, { transactionId: made.id }]);
    assert.equal((await list(cardId)).length, 1);
    const [row, ...others] = await keptRows(stack, event.networkTransactionId);
    assert.deepEqual([row?.status, row?.transaction_id, others], ['booked', made.id, []]);
  });

  it("is booked when the network's id of its card becomes known later, in the order of arrival", async () => {
    const cardId = await issue();
    const networkCardId = await networkIdOf(stack, cardId);
    await forgetNetworkCard(stack, cardId);
    const events = Array.from({ length: 5 }, (_, i) =>
      networkTransaction(networkCardId, { amountCents: 100 + i }),
    );
    for (const event of events) await keep(event);
    await asOwner(stack, "UPDATE card SET network_card_id = $2, last4 = '1234' WHERE id = $1", [
      cardId,
      networkCardId,
    ]);
    const made = await until('all are booked', async () => {
      const found = await list(cardId);
      return found.length === 5 && found;
    });
    assert.deepEqual(
      made.map(({ amount }: { amount: number }) => amount),
      [104, 103, 102, 101, 100],
    );
  });

  it('gets the same answer twenty times at once, and is kept once', async () => {
    const event = networkTransaction(`net_${randomUUID()}`);
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(event)));
    assert.deepEqual(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 1);
    assert.equal(answers[0]?.status, 202);
    // The same content in another order, with what is said by default.
    const again = await send({ merchant: { name: null }, forced: true, ...event });
    assert.equal(again.text, answers[0]?.text);
    assert.equal((await keptRows(stack, event.networkTransactionId)).length, 1);
  });

  it('shows nothing of its content outside the seal', async () => {
    const event = networkTransaction(`net_${randomUUID()}`, {
      merchant: { name: 'Secret Shop' },
      pan: '4242424242424242',
    });
    const id = await keep(event);
    const [row] = await keptRows(stack, event.networkTransactionId);
    const clear = JSON.stringify({ ...row, body: row?.body.toString('latin1') });
    for (const secret of ['Secret Shop', '4242424242424242']) {
      assert.ok(!clear.includes(secret));
      assert.ok(!stack.logLines.some((line) => line.includes(secret)));
    }
    const shown = await operate('transaction', 'show-kept', id);
    assert.ok(!shown.out.includes('4242424242424242'));
    assert.deepEqual(shown.json.reported.unreadable, ['pan']);
  });

  for (const [what, more, reason, flags] of [
    ['an unknown type', { type: 'balance_inquiry' }, 'not_understood', ['--type', 'purchase']],
    ['another currency', { currency: 'EUR' }, 'not_understood', ['--amount', '100']],
    ['a field that we do not know', { cashback: 5 }, 'not_understood', []],
    ['no amount', { amountCents: 0 }, 'not_understood', ['--amount', '100']],
    [
      'an amount that no balance can hold',
      { type: 'refund', amountCents: 2 ** 53 - 1 },
      'unbookable',
      ['--amount', '100'],
    ],
  ] as const) {
    it(`is kept if it has ${what}, and booked by an operator who gives what is missing`, async () => {
      const cardId = await issue();
      const event = networkTransaction(await networkIdOf(stack, cardId), more);
      const id = await keep(event);
      assert.equal(await keep(event), id);
      const item = await itemOf(id);
      assert.deepEqual([item.kind, item.mode, item.partner_id], ['network_transaction', 'live', partner.id]);
      const { amountCents, networkTransactionId, networkCardId } = event;
      const isAmount = Number(amountCents) > 0;
      assert.equal(
        item.at_issuer,
        `at the issuer: ${isAmount ? `${amountCents} cents, ` : ''}transaction ${networkTransactionId}, card ${networkCardId}`,
      );
      assert.match(item.command, new RegExp(`transaction book ${id} .*--reason "…"$`));
      assert.equal(item.or_command, `npm run operator -- transaction dismiss ${id} --reason "…"`);
      assert.equal((await operate('transaction', 'show-kept', id)).json.reason, reason);
      if (flags.length > 0) {
        const refused = await operate('transaction', 'book', id, '--reason', 'r');
        assert.equal(refused.code, 1);
        assert.match(refused.err, /--type|--amount|Nothing was booked/);
      }
      const booked = await operate('transaction', 'book', id, ...flags, '--reason', 'ticket 4711');
      assert.equal(booked.code, 0, booked.err);
      assert.deepEqual([booked.json], await list(cardId));
      const { action, subject, detail } = await audited();
      assert.deepEqual([action, subject], ['transaction.book', booked.json.id]);
      assert.deepEqual([detail.messageId, detail.reason, detail.cardId], [id, 'ticket 4711', cardId]);
      assert.equal(await itemOf(id), undefined);
      const repeated = await send(event);
      assert.deepEqual([repeated.status, repeated.json], [200, { transactionId: booked.json.id }]);
    });
  }

  it('is kept if a different one has its id, and booked by hand under an id of its own', async () => {
    const cardId = await issue();
    const event = networkTransaction(await networkIdOf(stack, cardId));
    assert.equal((await send(event)).status, 200);
    const id = await keep({ ...event, amountCents: 101 });
    assert.equal(await keep({ ...event, amountCents: 101 }), id);
    assert.notEqual(await keep({ ...event, amountCents: 102 }), id);
    assert.equal((await send(event)).status, 200);
    const { code, json } = await operate('transaction', 'book', id, '--reason', 'two purchases');
    assert.deepEqual([code, json.amount, json.card_balance_after], [0, 101, 799]);
    const [newest] = (await operate('transaction', 'list', '--card', cardId)).json;
    assert.equal(newest.network_transaction_id, id);
  });

  it("is charged to the partner's balance if an operator books it on a card that was decided failed", async () => {
    const cardId = await failedByHand();
    const [, , before = 0] = await balanceOf(partner, 'live');
    const id = await keep(networkTransaction(`net_${randomUUID()}`));
    const item = await itemOf(id);
    assert.match(item.reason, /decided "--failed"/);
    assert.match(item.command, /--card "…"/);
    const without = await operate('transaction', 'book', id, '--reason', 'r');
    assert.equal(without.code, 1);
    assert.match(without.err, /give it with --card/);
    const { code, json, err } = await operate(
      'transaction',
      'book',
      id,
      '--card',
      cardId,
      '--reason',
      'ticket 1',
    );
    assert.equal(code, 0, err);
    assert.deepEqual(
      [json.type, json.charged_to, json.card_balance_after],
      ['purchase', 'partner_balance', 0],
    );
    const [, , after = 0] = await balanceOf(partner, 'live');
    assert.equal(before - after, 100 + json.fees[0].amount);
  });

  it("is kept with its account if the failed card has the network's id, and names the contradiction", async () => {
    const cardId = await failedByHand();
    const networkCardId = `net_${randomUUID()}`;
    await asOwner(stack, 'UPDATE card SET network_card_id = $2 WHERE id = $1', [cardId, networkCardId]);
    const id = await keep(networkTransaction(networkCardId));
    const item = await itemOf(id);
    assert.equal(item.partner_id, partner.id);
    assert.match(item.reason, /the network contradicts that/);
    assert.equal((await operate('transaction', 'book', id, '--reason', 'r')).code, 0);
  });

  it('is not booked any more once it is dismissed, even if it is repeated and its card becomes known', async () => {
    const networkCardId = `net_${randomUUID()}`;
    const event = networkTransaction(networkCardId);
    const id = await keep(event);
    const { code, json } = await operate('transaction', 'dismiss', id, '--reason', 'not ours, ticket 2');
    assert.deepEqual([code, json.status], [0, 'dismissed']);
    const { action, subject, detail } = await audited();
    assert.deepEqual([action, subject, detail.reason], ['transaction.dismiss', id, 'not ours, ticket 2']);
    assert.equal(await itemOf(id), undefined);
    assert.equal((await operate('transaction', 'dismiss', id, '--reason', 'r')).code, 1);
    const cardId = await issue();
    await asOwner(stack, 'UPDATE card SET network_card_id = $2 WHERE id = $1', [cardId, networkCardId]);
    assert.equal(await keep(event), id);
    const later = networkTransaction(networkCardId);
    assert.equal((await send(later)).status, 200);
    assert.equal((await list(cardId)).length, 1);
    // A mistake can be mended.
    assert.equal((await operate('transaction', 'book', id, '--reason', 'ours after all')).code, 0);
    assert.equal((await list(cardId)).length, 2);
  });

  it("is booked once if an operator, the automatic retry and the network's repetition race", async () => {
    const cardId = await issue();
    const networkCardId = await networkIdOf(stack, cardId);
    await forgetNetworkCard(stack, cardId);
    const events = Array.from({ length: 6 }, () => networkTransaction(networkCardId, { amountCents: 10 }));
    const ids = await Promise.all(events.map(keep));
    await Promise.all([
      asOwner(stack, "UPDATE card SET network_card_id = $2, last4 = '1234' WHERE id = $1", [
        cardId,
        networkCardId,
      ]),
      ...ids.map((id) => operate('transaction', 'book', id, '--card', cardId, '--reason', 'r')),
      ...events.map(send),
    ]);
    await until('all have ended', async () =>
      (await keptRows(stack, ...events.map((event) => event.networkTransactionId))).every(
        ({ status }) => status === 'booked',
      ),
    );
    assert.equal((await list(cardId)).length, 6);
    const { json } = await partner.call('GET', `/cards/${cardId}`, live);
    assert.equal(json.balance, 940);
  });

  it('refuses unknown ids, test cards, and cards of another network id', async () => {
    assert.equal((await operate('transaction', 'book', 'nmsg_x', '--reason', 'r')).code, 1);
    const cardId = await issue();
    const id = await keep(networkTransaction(await networkIdOf(stack, cardId), { cashback: 1 }));
    const other = await operate('transaction', 'book', id, '--card', await issue(), '--reason', 'r');
    assert.match(other.err, new RegExp(`belongs to ${cardId}`));
    const unknown = await keep(networkTransaction(`net_${randomUUID()}`));
    const test = (await createCard(partner, { amount: 1_000 })).json.id;
    const refused = await operate('transaction', 'book', unknown, '--card', test, '--reason', 'r');
    assert.match(refused.err, /must be a live card/);
  });

  it('gets 503 past the bound, which attention and metrics show, and nothing known is lost', async () => {
    const known = networkTransaction(`net_${randomUUID()}`);
    const id = await keep(known);
    await asOwner(
      stack,
      `INSERT INTO network_message (id, network, kind, message_id, fingerprint, body, size_bytes, network_card_id, reason)
       SELECT 'nmsg_flood' || n, 'simulated', 'transaction', 'flood' || n, '', '', 100, 'net_flood', 'card_unknown'
       FROM generate_series(1, $1) n`,
      [MAX_WAITING_MESSAGES],
    );
    const answer = await send(networkTransaction(`net_${randomUUID()}`));
    expectError(answer, 'unavailable');
    assert.equal(answer.headers.get('retry-after'), '60');
    assert.equal(await keep(known), id);
    const cardId = await issue();
    assert.equal((await send(networkTransaction(await networkIdOf(stack, cardId)))).status, 200);

    const items = (await operate('attention', 'list')).json as {
      kind: string;
      id: string;
      command: string;
    }[];
    assert.ok(items.some(({ kind }) => kind === 'network_transactions_full'));
    const many = items.filter(({ kind }) => kind === 'network_transaction');
    assert.ok(many.length < 50);
    const flood = many.find((item) => item.id === 'card_unknown');
    assert.match(flood?.command ?? '', /transaction kept --reason card_unknown$/);
    const listed = await operate('transaction', 'kept', '--reason', 'card_unknown', '--limit', '5');
    assert.equal(listed.json.length, 5);

    await asOwner(stack, "DELETE FROM network_message WHERE network_card_id = 'net_flood'", []);
    assert.equal((await send(networkTransaction(`net_${randomUUID()}`))).status, 202);
  });
});
