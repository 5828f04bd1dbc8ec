import assert from 'node:assert/strict';
import { ApiError } from '../../domain/api-error.ts';
import type { Tenant } from '../../domain/mode.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { type MessageOutcome, takeMessages } from '../../payments/take-messages.ts';
import { presentTransaction, type TransactionResource } from '../../payments/transaction-resource.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { messageOf, type Settled, seedCard, settledAs, settlementOf } from '../support/commands/cards.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { balanceOfCard } from '../support/money.ts';

const FUNDS = 100_000;

describe('takeMessages', () => {
  let commands: TestCommands;
  let tenant: Tenant;
  before(async () => {
    commands = await openCommands();
  });
  beforeEach(async () => {
    tenant = { partnerId: await commands.createFundedPartner(FUNDS), mode: 'live' };
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  const settle = (...settlements: Settled[]) =>
    transaction(commands.context.orm, (tx) => takeMessages(tx, settlements.map(messageOf)));
  const settled = async (...settlements: Settled[]) => (await settle(...settlements)).map(transactionOf);
  const total = async (of: Tenant = tenant) =>
    (await readBalance(commands.context.orm.em.fork(), of.partnerId, of.mode)).totalCents;
  const onCard = (cardId: string) => balanceOfCard(commands.context.orm.em.fork(), cardId);
  const eventsOf = async (cardId: string) =>
    (
      await commands.owner.query('SELECT id, type, mode, body FROM event WHERE card_id = $1 ORDER BY id', [
        cardId,
      ])
    ).rows;

  it("names, of a refund, the only purchase of the network's payment, and refuses none that gives back more", async () => {
    const cardId = await seedCard(commands, tenant, { balanceCents: 5_000 });
    const of = (networkPaymentId: string | null, type: 'purchase' | 'refund', amountCents: number) =>
      settlementOf(tenant, cardId, { networkPaymentId, type, amountCents });
    const [bought] = await settled(of('p1', 'purchase', 100));
    await settled(of('p2', 'purchase', 100), of('p2', 'purchase', 200));
    const refunds = await settled(
      of('p1', 'refund', 60),
      of('p1', 'refund', 60),
      of('p2', 'refund', 100),
      of('p3', 'refund', 100),
      of(null, 'refund', 100),
    );
    assert.deepEqual(
      refunds.map((refund) => refund?.refunded_transaction_id),
      [bought?.id, bought?.id, null, null, null],
    );
  });

  it('names it, too, if purchase and refund come together', async () => {
    const cardId = await seedCard(commands, tenant, { balanceCents: 5_000 });
    const of = (networkPaymentId: string, type: 'purchase' | 'refund') =>
      settlementOf(tenant, cardId, { networkPaymentId: `${networkPaymentId} of ${cardId}`, type });
    await settled(of('p2', 'purchase'));
    const [bought, refund, , ofTwo] = await settled(
      of('p1', 'purchase'),
      of('p1', 'refund'),
      of('p2', 'purchase'),
      of('p2', 'refund'),
    );
    assert.equal(refund?.refunded_transaction_id, bought?.id);
    assert.equal(ofTwo?.refunded_transaction_id, null);
  });

  it('decides transactions in order, each on what the previous ones left, and lists them in that order', async () => {
    const cardId = await seedCard(commands, tenant, { balanceCents: 250 });
    const made = await settled(
      settlementOf(tenant, cardId),
      settlementOf(tenant, cardId, { amountCents: 151 }),
      settlementOf(tenant, cardId, { type: 'refund', amountCents: 1 }),
      settlementOf(tenant, cardId, { amountCents: 151 }),
      settlementOf(tenant, cardId, { type: 'decline', amountCents: 9 }),
    );
    assert.deepEqual(
      made.map(({ type, decline_reason, card_balance_after }) => [type, decline_reason, card_balance_after]),
      [
        ['purchase', null, 150],
        ['decline', 'insufficient_card_balance', 150],
        ['refund', null, 151],
        ['purchase', null, 0],
        ['decline', 'declined_by_network', 0],
      ],
    );
    const ids = made.map(({ id }) => id);
    assert.deepEqual(ids, ids.toSorted());
    const events = (await eventsOf(cardId)).map(({ body }) => JSON.parse(body).data);
    assert.deepEqual(
      events.map(({ transaction: { id }, card }) => [id, card.balance]),
      made.map(({ id, card_balance_after }) => [id, card_balance_after]),
    );
  });

  it('settles cards of several accounts and modes in one transaction', async () => {
    const other: Tenant = { partnerId: await commands.createFundedPartner(FUNDS), mode: 'live' };
    const test: Tenant = { ...tenant, mode: 'test' };
    const cards: string[] = [];
    for (const each of [tenant, other, test])
      cards.push(await seedCard(commands, each, { balanceCents: 300 }));
    const settlements = [tenant, other, test].flatMap((of, index) =>
      [10, 20].map((amountCents) => settlementOf(of, cards[index] ?? '', { amountCents })),
    );
    await settled(...settlements.toReversed());
    for (const [index, of] of [tenant, other, test].entries()) {
      assert.equal(await onCard(cards[index] ?? ''), 270);
      assert.equal(await total(of), FUNDS - 300 - 20);
    }
  });

  it('answers each transaction separately, so that a refusal affects no other', async () => {
    const cardId = await seedCard(commands, tenant, { balanceCents: 200 });
    const pending = await seedCard(commands, tenant, { status: 'funding_pending' });
    const failed = await seedCard(commands, tenant, { status: 'failed' });
    const foreign: Tenant = { partnerId: await commands.createFundedPartner(FUNDS), mode: 'live' };
    const outcomes = await settle(
      settlementOf(tenant, pending),
      settlementOf(tenant, cardId),
      settlementOf(tenant, failed),
      settlementOf(tenant, 'card_01k0000000000000000000000a'),
      settlementOf(foreign, cardId),
      settlementOf({ ...tenant, mode: 'test' }, cardId),
      settlementOf(tenant, cardId, { type: 'refund', amountCents: Number.MAX_SAFE_INTEGER }),
      settlementOf(tenant, cardId),
    );
    assert.deepEqual(outcomes.map(codeOf), [
      ...['invalid_state', 'settled', 'invalid_state', 'card_not_found', 'card_not_found', 'card_not_found'],
      ...['validation_failed', 'settled'],
    ]);
    assert.equal(await onCard(cardId), 0);
    assert.equal((await eventsOf(cardId)).length, 2);
  });

  for (const isBatch of [true, false])
    it(`refuses a payment that was on another card before, ${isBatch ? 'in one batch' : 'one by one'}`, async () => {
      const cardId = await seedCard(commands, tenant, { balanceCents: 1_000 });
      const another = await seedCard(commands, tenant, { balanceCents: 1_000 });
      const clearings = [cardId, another].map((of) => {
        const networkPaymentId = `payment of ${cardId}`;
        const { simulated, ...taken } = messageOf(settlementOf(tenant, of, { networkPaymentId }));
        const message = { ...simulated.message, type: 'clearing' as const };
        return { ...taken, simulated: { ...simulated, message } };
      });
      const batches = isBatch ? [clearings] : clearings.map((clearing) => [clearing]);
      const outcomes: MessageOutcome[] = [];
      for (const messages of batches)
        outcomes.push(...(await transaction(commands.context.orm, (tx) => takeMessages(tx, messages))));
      assert.deepEqual(outcomes.map(codeOf), ['settled', 'idempotency_conflict']);
      assert.deepEqual([await onCard(cardId), await onCard(another)], [900, 1_000]);
    });

  describe('if a network transaction id is repeated,', () => {
    it('returns the same transaction, whatever has happened since, and moves nothing', async () => {
      const cardId = await seedCard(commands, tenant, { balanceCents: 1_000 });
      const settlement = settlementOf(tenant, cardId, { amountCents: 600 });
      const [first, twice] = await settle(settlement, settlement);
      await commands.owner.query(`UPDATE card SET status = 'blocked' WHERE id = $1`, [cardId]);
      const [again] = await settle(settlement);
      const { id } = transactionOf(first);
      assert.deepEqual(
        [first, twice, again].map((outcome) => outcome && settledAs(outcome)),
        [
          { id, replayed: false },
          { id, replayed: true },
          { id, replayed: true },
        ],
      );
      assert.equal(await onCard(cardId), 400);
      assert.equal((await eventsOf(cardId)).length, 1);
    });

    it('reports a conflict if anything differs, in another batch or in the same one', async () => {
      const cardId = await seedCard(commands, tenant, { balanceCents: 1_000 });
      const another = await seedCard(commands, tenant, { balanceCents: 1_000 });
      const foreign: Tenant = { partnerId: await commands.createFundedPartner(FUNDS), mode: 'live' };
      const settlement = settlementOf(tenant, cardId);
      const others: Settled[] = [
        { ...settlement, amountCents: 101 },
        { ...settlement, type: 'refund' },
        { ...settlement, type: 'decline' },
        { ...settlement, forced: false },
        { ...settlement, cardId: another },
        ...(['name', 'categoryCode', 'city', 'country'] as const).map((field) => ({
          ...settlement,
          merchant: { ...settlement.merchant, [field]: '1234' },
        })),
        { ...settlement, ...foreign, cardId: await seedCard(commands, foreign) },
      ];
      const conflicts = others.map(() => 'idempotency_conflict');
      assert.deepEqual((await settle(settlement, ...others)).map(codeOf), ['settled', ...conflicts]);
      assert.deepEqual((await settle(...others)).map(codeOf), conflicts);
      assert.deepEqual([await onCard(cardId), await onCard(another)], [900, 1_000]);
    });

    it('treats the modes separately', async () => {
      const test: Tenant = { ...tenant, mode: 'test' };
      const live = settlementOf(tenant, await seedCard(commands, tenant, { balanceCents: 100 }));
      const other = { ...live, ...test, cardId: await seedCard(commands, test, { balanceCents: 100 }) };
      assert.deepEqual((await settle(live, other)).map(codeOf), ['settled', 'settled']);
    });

    it('settles one transaction for 40 simultaneous reports, on the same card and on others', async () => {
      const funds = { balanceCents: 1_000 };
      const cards = [await seedCard(commands, tenant, funds), await seedCard(commands, tenant, funds)];
      const settlement = settlementOf(tenant, '');
      const outcomes = await Promise.all(
        Array.from({ length: 40 }, (_, i) => settle({ ...settlement, cardId: cards[i % 2] ?? '' })),
      );
      const made = outcomes
        .flat()
        .map(settledAs)
        .filter((outcome): outcome is { id: string; replayed: boolean } => !(outcome instanceof ApiError));
      assert.equal(made.length, 20, 'the other card meets a conflict');
      assert.equal(made.filter(({ replayed }) => !replayed).length, 1);
      assert.equal(new Set(made.map(({ id }) => id)).size, 1);
      const left = await Promise.all(cards.map(onCard));
      assert.deepEqual(left.toSorted(), [1_000, 900]);
    });
  });

  it('charges forced purchases on a blocked card, and fees, to the balance, even below zero, and refunds to it', async () => {
    const cardId = await seedCard(commands, tenant, { status: 'blocked' });
    const [debit] = await settled(settlementOf(tenant, cardId, { amountCents: FUNDS + 1_000 }));
    assert.deepEqual(
      [debit?.charged_to, debit?.type, debit?.card_balance_after],
      ['partner_balance', 'purchase', 0],
    );
    assert.deepEqual(debit?.fees, [{ type: 'transaction', amount: 515 }]);
    assert.equal(await total(), -1_515);
    const [refused, refund] = await settled(
      settlementOf(tenant, cardId, { forced: false }),
      settlementOf(tenant, cardId, { type: 'refund', amountCents: 500 }),
    );
    assert.equal(refused?.decline_reason, 'card_blocked');
    assert.deepEqual([refund?.charged_to, refund?.status, refund?.fees], ['partner_balance', 'settled', []]);
    assert.equal(await total(), -1_515 - 25 + 500);
  });

  it("charges the account's own fees, and writes nothing to the ledger if nothing is charged", async () => {
    await commands.owner.query('UPDATE partner SET fee_plan = $2 WHERE id = $1', [
      tenant.partnerId,
      JSON.stringify({
        ...{ cardActivationCents: 0, cardFundingBasisPoints: 0, cardFundingMinCents: 0 },
        ...{ transactionFlatCents: 0, transactionBasisPoints: 333, declineFlatCents: 0 },
      }),
    ]);
    const cardId = await seedCard(commands, tenant, { balanceCents: 1_000 });
    const [purchase, decline] = await settled(
      settlementOf(tenant, cardId, { amountCents: 500 }),
      settlementOf(tenant, cardId, { type: 'decline' }),
    );
    assert.deepEqual(purchase?.fees, [{ type: 'transaction', amount: 17 }]);
    assert.deepEqual(decline?.fees, []);
    const moved = 'SELECT FROM ledger.transfer WHERE operation_id = $1';
    assert.equal((await commands.owner.query(moved, [`settle/${decline?.id}`])).rowCount, 0);
    assert.equal((await commands.owner.query(moved, [`settle/${purchase?.id}`])).rowCount, 2);
  });
});

function transactionOf(outcome: MessageOutcome | undefined): TransactionResource {
  const [row] = outcome !== undefined && 'taken' in outcome ? outcome.taken.transactions : [];
  if (row === undefined) throw outcome;
  return presentTransaction(row);
}

function codeOf(outcome: MessageOutcome): string {
  return 'refused' in outcome ? outcome.refused.code : 'settled';
}
