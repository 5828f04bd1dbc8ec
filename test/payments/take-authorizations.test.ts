import assert from 'node:assert/strict';
import type { Tenant } from '../../domain/mode.ts';
import { completeControls } from '../../domain/spending-controls.ts';
import type { SimulatedMessage } from '../../issuers/simulated/fold.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { bookPayments } from '../../payments/book-payments.ts';
import { NEW_PAYMENT } from '../../payments/rules.ts';
import { takeMessages } from '../../payments/take-messages.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { messageOf, seedCard, settlementOf } from '../support/commands/cards.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { balanceOfCard } from '../support/money.ts';

describe('takeMessages, about authorizations,', () => {
  let commands: TestCommands;
  let tenant: Tenant;
  before(async () => {
    commands = await openCommands();
  });
  beforeEach(async () => {
    tenant = { partnerId: await commands.createFundedPartner(100_000), mode: 'live' };
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  type Said = Pick<SimulatedMessage, 'type' | 'amountCents'> & {
    id?: string;
    of?: string;
    isFinal?: boolean;
  };
  /** @returns for each, why it was declined; null if it was not */
  const takeAll = async (cardId: string, ...said: Said[]) => {
    const messages = said.map(({ amountCents, of, ...message }) => {
      const { simulated, ...taken } = messageOf(settlementOf(tenant, cardId));
      return {
        ...taken,
        simulated: {
          ...simulated,
          message: { ...simulated.message, ...message, amountCents },
          networkPaymentId: of === undefined ? simulated.networkPaymentId : `${of} of ${cardId}`,
          ttlMs: 86_400_000,
        },
      };
    });
    const outcomes = await transaction(commands.context.orm, (tx) => takeMessages(tx, messages));
    return outcomes.map((outcome) => 'taken' in outcome && outcome.taken.reason);
  };

  describe('decides purchases within the spending limits of a card, whatever is taken with them:', () => {
    const limited = async (amount: number) => {
      const cardId = await seedCard(commands, tenant, { balanceCents: 5_000 });
      const controls = completeControls({ spending_limits: [{ amount, interval: 'daily' }] });
      await commands.owner.query('UPDATE card SET spending_controls = $2 WHERE id = $1', [cardId, controls]);
      return cardId;
    };
    const over = 'spending_limit_exceeded';
    const request: Said = { type: 'authorization', amountCents: 100, of: 'a' };
    const bought = (amountCents: number, of?: string): Said => ({
      type: 'purchase',
      amountCents,
      ...(of && { of }),
    });

    for (const [what, before, together, reasons] of [
      ['a refund', [], [{ type: 'refund', amountCents: 1 }, bought(200), bought(1)], [null, null, over]],
      [
        'a clearing by itself',
        [],
        [{ type: 'clearing', amountCents: 150, of: 'b' }, bought(51), bought(50)],
        [null, over, null],
      ],
      [
        'a clearing that its hold pays, which counts already',
        [request],
        [{ type: 'clearing', amountCents: 60, of: 'a', isFinal: false }, bought(101), bought(100)],
        [null, over, null],
      ],
      [
        'a clearing of more than was held',
        [request],
        [{ type: 'clearing', amountCents: 130, of: 'a' }, bought(71), bought(70)],
        [null, over, null],
      ],
    ] as [string, Said[], Said[], (string | null)[]][])
      it(what, async () => {
        const cardId = await limited(200);
        for (const said of before) assert.deepEqual(await takeAll(cardId, said), [null]);
        assert.deepEqual(await takeAll(cardId, ...together), reasons);
      });

    it('in the interval in which they are made, though their payment is older', async () => {
      const cardId = await limited(200);
      await takeAll(cardId, request);
      await commands.owner.query(
        `UPDATE card_authorization SET created_at = created_at - interval '2 days' WHERE card_id = $1`,
        [cardId],
      );
      await takeAll(cardId, bought(100));
      assert.deepEqual(await takeAll(cardId, bought(1, 'a')), [over]);
      // Its id is as old as it was, and the counter is right.
      await commands.owner.query(
        `UPDATE card_authorization SET created_at = created_at + interval '2 days' WHERE card_id = $1`,
        [cardId],
      );
    });
  });

  for (const isBatch of [true, false])
    it(`links to an authorization what was cleared of it before, and no other purchase of its payment, ${isBatch ? 'in one batch' : 'one by one'}`, async () => {
      const cardId = await seedCard(commands, tenant, { balanceCents: 5_000 });
      const messages = [
        { type: 'purchase', amountCents: 100, of: 'a' },
        { type: 'clearing', amountCents: 70, isFinal: false, of: 'a' },
        { type: 'authorization', amountCents: 90, of: 'a' },
      ] as const;
      if (isBatch) await takeAll(cardId, ...messages);
      else for (const message of messages) await takeAll(cardId, message);
      const { rows } = await commands.owner.query(
        `SELECT t.amount_cents::int AS cents, z.settled_cents::int AS settled
         FROM card_transaction t LEFT JOIN card_authorization z ON z.id = t.authorization_id
         WHERE t.card_id = $1 ORDER BY t.id`,
        [cardId],
      );
      assert.deepEqual(rows, [
        { cents: 100, settled: null },
        { cents: 70, settled: 70 },
      ]);
    });

  describe('once a person has said what an unreadable clearing means,', () => {
    for (const [means, cents, settledCents, isJustLearned] of [
      ['nothing', null, 4_000, false],
      ['purchase', 3_000, 7_000, false],
      ['purchase', 3_000, 7_000, true],
    ] as const) {
      const when = isJustLearned ? ', although its card was unknown to that person' : '';
      it(`frees what the final one leaves, and books it once: ${means}${when}`, async () => {
        const cardId = await seedCard(commands, tenant, { balanceCents: 20_000 });
        const element = `element of ${cardId}`;
        const paymentId = `a of ${cardId}`;
        await takeAll(cardId, { type: 'authorization', amountCents: 10_000, of: 'a' });
        await takeAll(cardId, {
          id: element,
          type: 'unreadable',
          amountCents: null,
          of: 'a',
          isFinal: false,
        });
        await commands.owner.query(
          `INSERT INTO payment_element (id, means, amount_cents, payment_id, requested_by, approved)
           VALUES ($1, $2, $3, $4, 'somebody', true)`,
          [element, means, cents, paymentId],
        );
        const named = { ...NEW_PAYMENT.said, paymentId, networkCardId: cardId, requests: [], movements: [] };
        const snapshot = isJustLearned ? named : null;
        await transaction(commands.context.orm, (tx) =>
          bookPayments(tx, [{ cardId, paymentId, snapshot, readAt: null }], { ttlMs: 0 }),
        );
        const { rows: held } = await commands.owner.query(
          'SELECT held_cents::int FROM card_authorization WHERE card_id = $1',
          [cardId],
        );
        assert.deepEqual(held, [{ held_cents: 10_000 - (cents ?? 0) }]);
        await takeAll(cardId, { type: 'clearing', amountCents: 4_000, of: 'a' });
        const { rows } = await commands.owner.query(
          `SELECT z.status, z.held_cents::int, z.settled_cents::int, count(t.id)::int AS transactions
           FROM card_authorization z JOIN card_transaction t ON t.authorization_id = z.id WHERE z.card_id = $1 GROUP BY z.id`,
          [cardId],
        );
        const transactions = means === 'nothing' ? 1 : 2;
        assert.deepEqual(rows, [
          { status: 'closed', held_cents: 0, settled_cents: settledCents, transactions },
        ]);
        assert.equal(await balanceOfCard(commands.context.orm.em.fork(), cardId), 20_000 - settledCents);
      });
    }
  });
});
