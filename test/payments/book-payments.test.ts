import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { checkBooks } from '../../exports/check-books.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { bookPayments } from '../../payments/book-payments.ts';
import { decidePayment } from '../../payments/decide-payment.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { Draws, liveAlone } from '../support/payments/history.ts';
import {
  IncreaseIssuer,
  type Issuer,
  LithicIssuer,
  MERCHANT,
  named,
  type Read,
} from '../support/payments/issuers.ts';
import { propertyRuns } from '../support/property-runs.ts';

const BALANCE_CENTS = 100_000;
const ttlMs = 7 * 86_400_000;

describe('bookPayments', () => {
  let commands: TestCommands;
  let partnerId: string;
  before(async () => {
    commands = await openCommands();
  });
  beforeEach(async () => {
    partnerId = await commands.createFundedPartner(1_000_000);
  });
  after(() => commands.close());

  /** A payment of a new card. Its elements have ids of their own, as a network's have. */
  async function open(issuer: Issuer = new LithicIssuer(true), balanceCents = BALANCE_CENTS) {
    const cardId = await commands.createActiveCard(partnerId, 'live', balanceCents);
    const paymentId = randomUUID();
    const book = async (read: Read | null = issuer.read(), readAt: Date | null = new Date()) => {
      const payment = { cardId, paymentId, snapshot: read && named(paymentId, read.snapshot()), readAt };
      const [booked] = await transaction(commands.context.orm, (tx) =>
        bookPayments(tx, [payment], { ttlMs }),
      );
      return booked;
    };
    return { issuer, cardId, paymentId, book };
  }
  const rows = async <Row extends object>(text: string, values: unknown[]) =>
    (await commands.owner.query<Row>(text, values)).rows;
  const seen = async (cardId: string) => {
    const made = await rows<Record<string, string>>(
      'SELECT status, amount_cents, held_cents, settled_cents FROM card_authorization WHERE card_id = $1',
      [cardId],
    );
    return made.map((row) => [
      row.status,
      ...['amount', 'held', 'settled'].map((of) => Number(row[`${of}_cents`])),
    ]);
  };
  const money = async (cardId: string) => {
    const [card] = await rows<Record<string, string>>(
      'SELECT posted, held FROM ledger.account WHERE card_id = $1',
      [cardId],
    );
    const [balance] = await rows<Record<string, string>>('SELECT posted FROM ledger.account WHERE id = $1', [
      `prepaid/live/${partnerId}`,
    ]);
    return [card?.posted, card?.held, balance?.posted].map(Number);
  };
  const events = (cardId: string) =>
    rows<{ type: string }>(
      `SELECT type FROM event WHERE card_id = $1 AND type ~ 'authorization|transaction' ORDER BY id`,
      [cardId],
    ).then((made) => made.map(({ type }) => type));
  const assertClean = async () => {
    const em = commands.context.orm.em.fork();
    assert.deepEqual([await checkLedger(em), await checkBooks(em)], [[], []]);
  };

  it('books what an issuer approved and cleared without us, once, with its events', async () => {
    const { issuer, cardId, book } = await open();
    issuer.request(300, true, null);
    await book();
    assert.deepEqual(await seen(cardId), [['pending', 300, 300, 0]]);
    issuer.clear(120, false);
    issuer.refund(20);
    for (let again = 0; again < 3; again++) await book();
    assert.deepEqual(await seen(cardId), [['pending', 300, 180, 120]]);
    const [posted, held] = await money(cardId);
    assert.deepEqual([posted, held], [BALANCE_CENTS - 100, 180]);
    assert.deepEqual(await events(cardId), [
      'card.authorization.created',
      'card.authorization.updated',
      'card.transaction.created',
      'card.transaction.created',
    ]);
    const [refund] = await rows<{ refunded: string; clearing: string }>(
      `SELECT r.refunded_transaction_id AS refunded, c.id AS clearing FROM card_transaction r, card_transaction c
       WHERE r.card_id = $1 AND r.type = 'refund' AND c.card_id = $1 AND c.type = 'purchase'`,
      [cardId],
    );
    assert.equal(refund?.refunded, refund?.clearing);
    await assertClean();
  });

  it('writes nothing and sends no event if nothing differs', async () => {
    const { issuer, cardId, book } = await open();
    issuer.request(300, true, null);
    const first = await book();
    const version = () => rows<{ xmin: string }>('SELECT xmin FROM payment WHERE card_id = $1', [cardId]);
    const before = await version();
    const again = await book();
    assert.deepEqual([first?.isChanged, again?.isChanged], [true, false]);
    assert.deepEqual(await version(), before);
  });

  it('books a payment on no other card than before, such as one that has got its id at the network meanwhile', async () => {
    const { issuer, cardId, paymentId, book } = await open();
    issuer.request(300, true, null);
    await book();
    const other = await open(issuer);
    issuer.clear(120, false);
    const before = [await seen(cardId), await money(cardId), await money(other.cardId)];
    const read = { paymentId, snapshot: named(paymentId, issuer.read().snapshot()), readAt: new Date() };
    const booking = transaction(commands.context.orm, (tx) =>
      bookPayments(tx, [{ cardId: other.cardId, ...read }], { ttlMs }),
    );
    await assert.rejects(booking, { code: 'idempotency_conflict' });
    assert.deepEqual([await seen(cardId), await money(cardId), await money(other.cardId)], before);
    await assertClean();
  });

  it('leaves nothing to be decided of an element that it can read now', async () => {
    const { issuer, cardId, book } = await open();
    issuer.refund(20);
    const read = issuer.read();
    const { movements, ...rest } = read.snapshot();
    const unreadable = movements.map(({ id, amountCents: amount }) => {
      return { id, what: 'RETURN', at: new Date(0).toISOString(), currency: 'EUR', amount };
    });
    await book({ ...read, snapshot: () => ({ ...rest, movements: [], unreadable }) });
    const undecided = () =>
      rows("SELECT jsonb_array_length(said -> 'unreadable') AS count FROM payment WHERE card_id = $1", [
        cardId,
      ]);
    assert.deepEqual(await undecided(), [{ count: 1 }]);
    await book();
    assert.deepEqual(await undecided(), [{ count: 0 }]);
    assert.deepEqual((await money(cardId)).slice(0, 2), [BALANCE_CENTS + 20, 0]);
    assert.equal((await book())?.isChanged, false);
  });

  it('books a decline with its fee, once, and no authorization', async () => {
    const { issuer, cardId, book } = await open();
    issuer.request(300, false, null);
    for (let again = 0; again < 2; again++) await book();
    assert.deepEqual(await seen(cardId), []);
    const made = await rows('SELECT type, decline_reason, fees FROM card_transaction WHERE card_id = $1', [
      cardId,
    ]);
    const fees = [{ type: 'decline', amount: 25 }];
    assert.deepEqual(made, [{ type: 'decline', decline_reason: 'declined_by_network', fees }]);
    await assertClean();
  });

  it('lets the card pay, then the prepaid balance, and holds no more than the card has', async () => {
    const { issuer, cardId, book } = await open(new LithicIssuer(true), 100);
    const [, , before = 0] = await money(cardId);
    issuer.request(300, true, null);
    await book();
    assert.deepEqual(await seen(cardId), [['pending', 300, 100, 0]]);
    issuer.clear(130, true);
    await book();
    const [posted, held, after = 0] = await money(cardId);
    assert.deepEqual([posted, held, before - after], [0, 0, 30 + 11]);
    assert.deepEqual(await seen(cardId), [['closed', 300, 0, 130]]);
    await assertClean();
  });

  /** A person says that an element is a purchase. */
  const say = (paymentId: string, element: string, cents: number) =>
    commands.owner.query(
      `INSERT INTO payment_element (id, means, amount_cents, payment_id, requested_by, approved)
       VALUES ($1, 'purchase', $3, $2, 'somebody', true)`,
      [`${paymentId}/${element}`, paymentId, cents],
    );

  const block = (cardId: string) =>
    commands.owner.query(
      `WITH blocked AS (UPDATE card SET status = 'blocked' WHERE id = $1 RETURNING partner_id, mode)
       UPDATE account_usage u SET open_cards = open_cards - 1 FROM blocked b WHERE u.partner_id = b.partner_id AND u.mode = b.mode`,
      [cardId],
    );

  describe('with what we decide ourselves', () => {
    const asking = async (balanceCents = BALANCE_CENTS) => {
      const opened = await open(new LithicIssuer(true), balanceCents);
      const { cardId, paymentId } = opened;
      const [card] = await rows<{ id: string }>('SELECT network_card_id AS id FROM card WHERE id = $1', [
        cardId,
      ]);
      const networkCardId = card?.id ?? '';
      const ask = async (cents: number, id: string | null, key = id ?? randomUUID()) => {
        const request = { cardId, networkCardId, paymentId, key, id, amountCents: cents, merchant: MERCHANT };
        const limits = { ttlMs, lockWaitMs: null };
        return transaction(commands.context.orm, (tx) => decidePayment(tx, request, limits));
      };
      return { ...opened, ask };
    };

    it('holds it at once, on top of what the issuer holds, and answers again as before', async () => {
      const { issuer, cardId, paymentId, book, ask } = await asking();
      assert.equal((await ask(100, `${paymentId}/e1`)).reason, null);
      issuer.request(100, true, issuer.name().named);
      await book();
      assert.equal((await ask(50, `${paymentId}/lost`)).reason, null);
      const { reason, booked } = await ask(50, `${paymentId}/lost`);
      assert.deepEqual([reason, booked?.isChanged], [null, false]);
      await book();
      assert.deepEqual(await seen(cardId), [['pending', 150, 150, 0]]);
      await book(issuer.read(), new Date(Date.now() + 601_000));
      assert.deepEqual(await seen(cardId), [['pending', 100, 100, 0]]);
      await assertClean();
    });

    it('shows the balance of a blocked card after its release, if the issuer has declined what we approved', async () => {
      const { issuer, cardId, paymentId, book, ask } = await asking(100);
      const { named } = issuer.name();
      await ask(100, `${paymentId}/${named}`);
      await block(cardId);
      issuer.request(100, false, named);
      await book();
      const told = await rows(
        `SELECT body::jsonb #>> '{data,transaction,card_balance_after}' AS after, body::jsonb #>> '{data,card,balance}' AS balance
         FROM event WHERE card_id = $1 AND type = 'card.transaction.created'`,
        [cardId],
      );
      assert.deepEqual(told, [{ after: '0', balance: '0' }]);
      await assertClean();
    });

    it('never holds more than the card has, however many ask at once', async () => {
      const { cardId, ask } = await asking(1_000);
      const answers = await Promise.all(Array.from({ length: 15 }, () => ask(99, null)));
      assert.equal(answers.filter(({ reason }) => reason === null).length, 10);
      assert.deepEqual((await money(cardId)).slice(0, 2), [1_000, 990]);
      await assertClean();
    });

    it('pays a purchase in one message that we declined and the issuer took, under one id', async () => {
      const { issuer, cardId, paymentId, book, ask } = await asking(100);
      const { named } = issuer.name();
      assert.equal((await ask(300, `${paymentId}/${named}`)).reason, 'insufficient_card_balance');
      issuer.single(300, named);
      await book();
      assert.deepEqual(await seen(cardId), [['closed', 300, 0, 300]]);
      assert.deepEqual((await money(cardId)).slice(0, 2), [0, 0]);
      await assertClean();
    });

    it('leaves declined what we declined, if a person says that it was cleared', async () => {
      const { issuer, cardId, paymentId, book, ask } = await asking(100);
      const { named } = issuer.name();
      assert.equal((await ask(300, `${paymentId}/${named}`)).reason, 'insufficient_card_balance');
      issuer.request(300, false, named);
      const element = issuer.clearInEuros(40);
      await book();
      await say(paymentId, element, 40);
      await book();
      assert.deepEqual(await seen(cardId), [['declined', 300, 0, 0]]);
      assert.deepEqual((await money(cardId)).slice(0, 2), [60, 0]);
      await assertClean();
    });
  });

  it('comes to what the books of the issuer say, whoever books it at the same time', async () => {
    const history = fc.array(fc.nat(1_000_000), { minLength: 8, maxLength: 24 });
    await fc.assert(
      fc.asyncProperty(history, fc.boolean(), async (numbers, isLithic) => {
        partnerId = await commands.createFundedPartner(1_000_000);
        const at = isLithic ? new LithicIssuer(true) : new IncreaseIssuer('2099-01-01T00:00:00.000Z');
        const { issuer, cardId, book } = await open(at);
        const [posted = 0, , prepaid = 0] = await money(cardId);
        const reads = liveAlone(issuer, new Draws(numbers));
        // Doubled, in another order, two at a time.
        const order = [...reads, ...reads].sort(
          (one, other) => one.told.size - other.told.size || one.holdCents - other.holdCents,
        );
        for (let at = 0; at < order.length; at += 2) {
          await Promise.all(order.slice(at, at + 2).map((read) => book(read, null)));
        }
        await Promise.all([book(), book()]);
        const [left = 0, held, balance = 0] = await money(cardId);
        const [fees] = await rows<{ cents: string }>(
          `SELECT coalesce(sum((f ->> 'amount')::bigint), 0) AS cents FROM card_transaction, jsonb_array_elements(fees) f WHERE card_id = $1`,
          [cardId],
        );
        assert.equal(held, issuer.holdCents);
        assert.equal(left + balance, posted + prepaid - issuer.movedCents - Number(fees?.cents));
      }),
      { numRuns: propertyRuns(20) },
    );
    await assertClean();
  });
});
