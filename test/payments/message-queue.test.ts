import assert from 'node:assert/strict';
import { ApiError } from '../../domain/api-error.ts';
import type { Tenant } from '../../domain/mode.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { createMessageQueue } from '../../payments/message-queue.ts';
import { type Settled, seedCard, settlementOf, settler } from '../support/commands/cards.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { balanceOfCard } from '../support/money.ts';

describe("the queue of the simulated network's messages", () => {
  let commands: TestCommands;
  let queue: ReturnType<typeof settler>;
  let tenant: Tenant;
  before(async () => {
    commands = await openCommands();
    queue = settler(createMessageQueue(commands.context.orm, () => {}));
  });
  beforeEach(async () => {
    tenant = { partnerId: await commands.createFundedPartner(1_000_000), mode: 'live' };
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  const onCard = (cardId: string) => balanceOfCard(commands.context.orm.em.fork(), cardId);
  const settleAll = (settlements: Settled[]) =>
    Promise.allSettled(settlements.map((settlement) => queue.settle(settlement)));
  const transactionsOf = async (cardId: string) =>
    Number(
      (
        await commands.owner.query(
          'SELECT count(DISTINCT xmin::text) AS count FROM card_transaction WHERE card_id = $1',
          [cardId],
        )
      ).rows[0].count,
    );

  it('settles in one transaction what arrived during the previous one', async () => {
    const cardId = await seedCard(commands, tenant, { balanceCents: 250 });
    const settled = await Promise.all(
      Array.from({ length: 250 }, () => queue.settle(settlementOf(tenant, cardId, { amountCents: 1 }))),
    );
    assert.deepEqual(
      settled.map(({ transaction }) => transaction.card_balance_after),
      Array.from({ length: 250 }, (_, i) => 249 - i),
    );
    const ids = settled.map(({ transaction }) => transaction.id);
    assert.deepEqual(ids, ids.toSorted(), 'listed in the order they were settled in');
    // At most 100 at a time.
    assert.equal(await transactionsOf(cardId), 3);
  });

  it('settles exactly 137 of 200 simultaneous purchases that a card can pay for, through two queues', async () => {
    const cardId = await seedCard(commands, tenant, { balanceCents: 137 * 70 + 69 });
    const before = await readBalance(commands.context.orm.em.fork(), tenant.partnerId, tenant.mode);
    const other = settler(createMessageQueue(commands.context.orm, () => {}));
    const settled = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        (i % 2 === 0 ? queue : other).settle(settlementOf(tenant, cardId, { amountCents: 70 })),
      ),
    );
    const of = (type: string) => settled.filter(({ transaction }) => transaction.type === type).length;
    assert.deepEqual([of('purchase'), of('decline')], [137, 63]);
    assert.equal(await onCard(cardId), 69);
    const after = await readBalance(commands.context.orm.em.fork(), tenant.partnerId, tenant.mode);
    assert.equal(before.totalCents - after.totalCents, 137 * 10 + 63 * 25);
  });

  it('retries each request alone after an error in a batch, and reports the error to its cause alone', async () => {
    const cardId = await seedCard(commands, tenant, { balanceCents: 1_000 });
    const blocked = await seedCard(commands, tenant, { status: 'blocked' });
    const tooMuch = { type: 'refund', amountCents: Number.MAX_SAFE_INTEGER } as const;
    const outcomes = await settleAll([
      settlementOf(tenant, cardId),
      settlementOf(tenant, cardId),
      // PostgreSQL refuses the character, and with it the whole shared statement.
      settlementOf(tenant, cardId, { networkTransactionId: 'a\0b' }),
      settlementOf(tenant, cardId),
      settlementOf(tenant, blocked, tooMuch),
      settlementOf(tenant, cardId),
    ]);
    assert.deepEqual(outcomes.map(told), [
      ...['purchase', 'purchase', 'an error', 'purchase', 'validation_failed', 'purchase'],
    ]);
    assert.equal(await onCard(cardId), 600);
  });

  describe('while a card is locked for a long time,', () => {
    let others: { tenant: Tenant; cardId: string }[];
    beforeEach(async () => {
      others = [];
      for (let i = 0; i < 10; i++) {
        const other: Tenant = { partnerId: await commands.createFundedPartner(10_000), mode: 'test' };
        others.push({ tenant: other, cardId: await seedCard(commands, other, { balanceCents: 1_000 }) });
      }
    });

    /** Settles on each of the others once. */
    const settleOthers = async () => {
      const settled = await Promise.all(
        others.map((other) => queue.settle(settlementOf(other.tenant, other.cardId))),
      );
      return new Set(settled.map(({ transaction }) => transaction.card_balance_after));
    };

    it("delays only the card's account, whether the others came together with it or later", async () => {
      const cardId = await seedCard(commands, tenant, { balanceCents: 1_000 });
      await commands.owner.query('BEGIN');
      await commands.owner.query('SELECT FROM card WHERE id = $1 FOR UPDATE', [cardId]);
      const waiting = [queue.settle(settlementOf(tenant, cardId))];
      assert.deepEqual(await settleOthers(), new Set([900]));
      waiting.push(queue.settle(settlementOf(tenant, cardId)));
      assert.deepEqual(await settleOthers(), new Set([800]));
      await commands.owner.query('COMMIT');
      assert.deepEqual(
        (await Promise.all(waiting)).map(({ transaction }) => transaction.card_balance_after),
        [900, 800],
      );
    });

    it('continues for the others, even if more accounts are locked than transactions may run at once', async () => {
      const locked = others.splice(0, 7);
      await commands.owner.query('BEGIN');
      await commands.owner.query('SELECT FROM card WHERE id = ANY($1) FOR UPDATE', [
        locked.map((other) => other.cardId),
      ]);
      // More of each than there are connections.
      const waiting = locked.flatMap((other) =>
        Array.from({ length: 9 }, () =>
          queue.settle(settlementOf(other.tenant, other.cardId, { amountCents: 1 })),
        ),
      );
      // They have taken all of them.
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(await settleOthers(), new Set([900]));
      assert.deepEqual(await settleOthers(), new Set([800]));
      await commands.owner.query('COMMIT');
      const left = (await Promise.all(waiting)).map(({ transaction }) => transaction.card_balance_after);
      assert.deepEqual(
        left,
        locked.flatMap(() => [999, 998, 997, 996, 995, 994, 993, 992, 991]),
      );
    });
  });

  it('puts accounts together if more arrive at once than transactions may run', async () => {
    const others: [Tenant, string][] = [];
    for (let i = 0; i < 12; i++) {
      const other: Tenant = { partnerId: await commands.createFundedPartner(10_000), mode: 'live' };
      others.push([other, await seedCard(commands, other, { balanceCents: 1_000 })]);
    }
    await Promise.all(others.map(([other, cardId]) => queue.settle(settlementOf(other, cardId))));
    const { rows } = await commands.owner.query(
      'SELECT count(DISTINCT xmin::text) AS count FROM card_transaction WHERE card_id = ANY($1)',
      [others.map(([, cardId]) => cardId)],
    );
    assert.equal(Number(rows[0].count), 4);
  });
});

function told(
  outcome: PromiseSettledResult<Awaited<ReturnType<ReturnType<typeof settler>['settle']>>>,
): string {
  if (outcome.status === 'fulfilled') return outcome.value.transaction.type ?? 'replayed';
  return outcome.reason instanceof ApiError ? outcome.reason.code : 'an error';
}
