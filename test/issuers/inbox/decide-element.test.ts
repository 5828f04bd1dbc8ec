import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { FakeLithic } from '../../../dev/lithic/fake-lithic.ts';
import type { Card } from '../../../dev/lithic/objects.ts';
import { allTaken, lithicCard, startLithicStack } from '../../support/adapters/lithic.ts';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean, balanceOf, fundedPartner } from '../../support/money.ts';
import { cardMoney } from '../../support/operation-kinds.ts';
import { environmentOf, type Operate, operateIn } from '../../support/operator/operate.ts';
import { asOwner } from '../../support/postgres.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;

describe('an element of a payment that a person decides', () => {
  let fake: FakeLithic;
  let stack: TestStack;
  let stop: () => Promise<void>;
  let partner: TestPartner;
  let operate: Operate;
  let cardId: string;
  let card: Card;
  before(async () => {
    ({ fake, stack, stop } = await startLithicStack());
    partner = await fundedPartner(stack, 10_000_000);
    operate = operateIn({ ...environmentOf(stack.config), ADJUSTMENT_APPROVAL_CENTS: '5000' });
  });
  beforeEach(async () => {
    fake.program.sendsEventTokens = false;
    cardId = (await createCard(partner, { amount: 10_000 }, live)).json.id;
    card = await lithicCard(fake, stack, cardId);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stop();
  });

  const money = () => cardMoney({ partner, mode: 'live', cardId });
  const transactions = async (): Promise<
    { id: string; type: string; amount: number; charged_to: string }[]
  > => (await partner.call('GET', `/cards/${cardId}/transactions`, live)).json.data;
  const items = async (): Promise<
    { kind: string; id: string; command: string; or_command: string; at_issuer: string; reason: string }[]
  > => (await operate('attention', 'list')).json;
  const itemOf = async (id: string) => (await items()).find((item) => item.id === id);
  const run = (line: string, ...more: string[]) => {
    const [, , , , ...args] = line.replaceAll(/ "[^"]*"/g, '').split(' ');
    return operate(
      ...args.filter((arg) => !['--type', '--amount', '--reason', '--card'].includes(arg)),
      ...more,
    );
  };
  const as = (actor: string) =>
    operateIn({ ...environmentOf(stack.config), ADJUSTMENT_APPROVAL_CENTS: '5000', OPERATOR: actor });

  for (const sendsEventTokens of [false, true]) {
    /** An authorization of 5,000 and its clearing in euros. */
    async function clearedInEuros() {
      fake.program.sendsEventTokens = sendsEventTokens;
      const transaction = await fake.program.authorize({ card, amount: 5_000 });
      fake.program.posts.holdsEvents = true;
      fake.program.record(transaction, { type: 'CLEARING', amount: 4_600 });
      fake.program.posts.holdsEvents = false;
      const [told] = transaction.events.slice(-1);
      assert.ok(told);
      for (const one of Object.values(told.amounts)) if (one !== null) one.currency = 'EUR';
      fake.program.posts.tell(transaction);
      await allTaken(fake, stack);
      return { transaction, element: told.token };
    }

    describe(`in another currency, ${sendsEventTokens ? 'with' : 'without'} event tokens`, () => {
      it('keeps its hold until it is booked, from that hold first, as attention list says, and once', async () => {
        const { transaction, element } = await clearedInEuros();
        assert.deepEqual(await money(), [10_000, 5_000]);
        const item = await itemOf(element);
        assert.equal(item?.kind, 'network_transaction');
        for (const named of [transaction.token, element, card.token, 'EUR 4600'])
          assert.ok(item.at_issuer.includes(named), `${named} in ${item.at_issuer}`);
        const more = ['--type', 'purchase', '--amount', '4990', '--reason', 'EUR 46.00, ticket 1'];
        const booked = await run(item.command, ...more);
        assert.deepEqual([booked.code, booked.json?.amount], [0, 4_990], booked.err);
        assert.deepEqual(await money(), [5_010, 4_610]);
        assert.equal(await itemOf(element), undefined);
        // Told again, in other words.
        transaction.merchant.descriptor = 'THE SHOP, WIEN';
        fake.program.posts.tell(transaction);
        await allTaken(fake, stack);
        assert.deepEqual(
          (await transactions()).map(({ type, amount }) => [type, amount]),
          [['purchase', 4_990]],
        );
        const again = await run(item.command, ...more);
        assert.match(again.err, /was decided before/);
        const [{ action, subject }] = (await operate('audit', 'list', '--subject', element)).json;
        assert.deepEqual([action, subject], ['transaction.book', element]);
      });

      it("follows the issuer's hold once it is dismissed, for good, and can be booked after all", async () => {
        const { element, transaction } = await clearedInEuros();
        const item = await itemOf(element);
        const dismissed = await run(item?.or_command ?? '', '--reason', 'not bought, ticket 2');
        assert.deepEqual([dismissed.code, dismissed.json?.status], [0, 'dismissed'], dismissed.err);
        const { hold } = transaction.amounts;
        assert.deepEqual(await money(), [10_000, 10_000 - hold.amount]);
        assert.equal(await itemOf(element), undefined);
        fake.program.posts.tell(transaction);
        await allTaken(fake, stack);
        assert.deepEqual(await transactions(), []);
        const flags = ['--type', 'refund', '--amount', '20', '--reason', 'it was a refund'];
        assert.equal((await operate('transaction', 'book', element, ...flags)).code, 0);
        assert.deepEqual(
          (await transactions()).map(({ type, amount }) => [type, amount]),
          [['refund', 20]],
        );
      });
    });
  }

  it('waits for a second person above the limit, who can reject it', async () => {
    const transaction = fake.program.begin(card, {}, { type: 'CORRECTION_DEBIT', amount: 6_000 });
    await allTaken(fake, stack);
    const element = transaction.events[0]?.token ?? '';
    const flags = ['--type', 'purchase', '--amount', '6000', '--reason', 'ticket 3'];
    const asked = await as('ada')('transaction', 'book', element, ...flags);
    assert.deepEqual([asked.code, asked.json?.status], [0, 'waiting_for_approval'], asked.err);
    assert.deepEqual(await transactions(), []);
    const item = await itemOf(element);
    assert.match(item?.command ?? '', /transaction approve/);
    assert.match((await as('ada')('transaction', 'approve', element)).err, /somebody else/);
    const rejected = await as('bob')('transaction', 'reject', element, '--reason', 'look again');
    assert.equal(rejected.code, 0, rejected.err);
    assert.match((await itemOf(element))?.command ?? '', /transaction book/);
    assert.equal((await as('ada')('transaction', 'book', element, ...flags)).code, 0);
    // Another login than the one that asked.
    await asOwner(stack, "UPDATE payment_element SET requested_login = 'ada' WHERE id = $1", [element]);
    const approved = await as('bob')('transaction', 'approve', element);
    assert.deepEqual([approved.code, approved.json?.amount], [0, 6_000], approved.err);
    assert.deepEqual(await money(), [4_000, 4_000]);
  });

  it('of an unknown card is booked on the card that is named, and with it all of its payment', async () => {
    const other = { ...card, token: randomUUID() };
    fake.program.cards.set(other.token, other);
    const transaction = fake.program.begin(other, {}, { type: 'CLEARING', amount: 300 });
    fake.program.record(transaction, { type: 'CLEARING', amount: 200 });
    await allTaken(fake, stack);
    const [first, second] = transaction.events.map(({ token }) => token) as [string, string];
    const item = await until('it waits', () => itemOf(second));
    assert.match(item.command, /--card/);
    const flags = ['--type', 'purchase', '--amount', '300', '--reason', 'ticket 4'];
    assert.match((await operate('transaction', 'book', first, ...flags)).err, /give it with --card/);
    const test = (await createCard(partner, { amount: 1_000 })).json.id;
    assert.match(
      (await operate('transaction', 'book', first, '--card', test, ...flags)).err,
      /must be a live card/,
    );
    const booked = await operate('transaction', 'book', first, '--card', cardId, ...flags);
    assert.equal(booked.code, 0, booked.err);
    await until('the other is booked, too', async () => (await transactions()).length === 2);
    assert.deepEqual(await money(), [9_500, 9_500]);
    await until('nothing waits', async () => (await itemOf(second)) === undefined);
  });

  it('of a failed card is charged to the prepaid balance', async () => {
    await asOwner(
      stack,
      "UPDATE card SET status = 'failed', failure_code = 'issuance_failed' WHERE id = $1",
      [cardId],
    );
    try {
      const transaction = fake.program.begin(card, {}, { type: 'CLEARING', amount: 100 });
      const element = transaction.events[0]?.token ?? '';
      await allTaken(fake, stack);
      const item = await until('it waits', () => itemOf(element));
      assert.match(item.reason, /the network contradicts that/);
      const [, , before = 0] = await balanceOf(partner, 'live');
      const booked = await run(item.command, '--type', 'purchase', '--amount', '100', '--reason', 'ticket 5');
      assert.deepEqual([booked.code, booked.json?.charged_to], [0, 'partner_balance'], booked.err);
      const [, , after = 0] = await balanceOf(partner, 'live');
      assert.equal(before - after, 100 + booked.json.fees[0].amount);
    } finally {
      await asOwner(stack, "UPDATE card SET status = 'active', failure_code = NULL WHERE id = $1", [cardId]);
    }
  });

  it('of an unknown card is dismissed for good, even if the card becomes known', async () => {
    const other = { ...card, token: randomUUID() };
    fake.program.cards.set(other.token, other);
    const transaction = fake.program.begin(other, {}, { type: 'CLEARING', amount: 300 });
    const element = transaction.events[0]?.token ?? '';
    await allTaken(fake, stack);
    await until('it waits', () => itemOf(element));
    assert.equal((await operate('transaction', 'dismiss', element, '--reason', 'not ours')).code, 0);
    await until('nothing waits', async () => (await operate('network-event', 'list')).json.length === 0);
    await asOwner(stack, 'UPDATE card SET network_card_id = $2 WHERE id = $1', [cardId, other.token]);
    fake.program.posts.tell(transaction);
    await allTaken(fake, stack);
    assert.deepEqual([await transactions(), await money()], [[], [10_000, 10_000]]);
  });

  it('is shown in one line if there are many, listed by a command, and unknown ids are refused', async () => {
    const made = Array.from({ length: 21 }, () =>
      fake.program.begin(card, {}, { type: 'CORRECTION_CREDIT', amount: 5, polarity: 'CREDIT' }),
    );
    await allTaken(fake, stack);
    const many = (await items()).filter(({ kind }) => kind === 'network_transaction');
    assert.deepEqual(
      many.map(({ id }) => id),
      ['unreadable'],
    );
    const listed = (await run(many[0]?.command ?? '')).json.map(({ id }: { id: string }) => id);
    for (const { events } of made) assert.ok(listed.includes(events[0]?.token));
    for (const { events } of made)
      await operate('transaction', 'dismiss', events[0]?.token ?? '', '--reason', 'a test');
    assert.deepEqual((await operate('transaction', 'undecided')).json, []);
    assert.match(
      (await operate('transaction', 'dismiss', 'nobody', '--reason', 'r')).err,
      /transaction undecided/,
    );
  });
});
