import assert from 'node:assert/strict';
import { failMostTopUps, failPendingTopUps, lockPendingTopUps } from '../../../cards/block.ts';
import { beginStatusChange, completeStatusChange } from '../../../cards/change-status.ts';
import { lockCard } from '../../../cards/lock-card.ts';
import { acceptTransfer, completeTransfer } from '../../../cards/transfers/end.ts';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { query } from '../../../platform/db/sql.ts';
import { transaction } from '../../../platform/db/transaction.ts';
import { begun, openCommands, type TestCommands } from '../../support/commands/open-commands.ts';
import { beginTopUp, stateOf, type TopUpCase } from '../../support/commands/transfers.ts';
import { countStatements } from '../../support/statements.ts';

/** What is left of 100,000 cents after a card of 1,000 and its fees. */
const FUNDS = 98_850;

describe('failPendingTopUps', () => {
  let commands: TestCommands;
  let card: Omit<TopUpCase, 'claimId'>;
  before(async () => {
    commands = await openCommands();
  });
  beforeEach(async () => {
    const partnerId = await commands.createFundedPartner(100_000);
    const cardId = await commands.createActiveCard(partnerId, 'live', 1_000);
    card = { partnerId, mode: 'live', cardId };
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  const claim = (amount: number) => commands.claimOf('top_up_card', card, { amount });
  const hold = async (amount: number) => {
    const claimId = await claim(amount);
    assert.equal(await begun(beginTopUp, commands.context, claimId), 'held');
    return claimId;
  };
  /** What a block does of it: the card's status, and this. */
  const block = () =>
    transaction(commands.context.orm, async (tx) => {
      await lockPendingTopUps(tx, card, card.cardId);
      const row = await lockCard(tx, card, card.cardId);
      assert.ok(row);
      await query(tx, `UPDATE card SET status = 'blocked' WHERE id = $1`, [card.cardId]);
      return failPendingTopUps({ tx, ring: commands.context.ring }, { ...row, status: 'blocked' });
    });
  const state = (claimId: string) => stateOf(commands, { ...card, claimId });
  const RELEASED = { cents: [FUNDS, 0], card: 1_000, usage: [1, 1_000] };

  it('fails accepted top-ups, refuses those without an answer, and returns them', async () => {
    const accepted = [await hold(2_000), await hold(3_000)];
    for (const claimId of accepted) await acceptTransfer(commands.context, claimId);
    const unanswered = await hold(4_000);
    assert.deepEqual((await state(unanswered)).cents, [FUNDS - 9_190, 9_190]);

    assert.deepEqual(await block(), [unanswered]);
    for (const claimId of accepted) {
      assert.deepEqual(await state(claimId), {
        topUp: ['failed', 'card_blocked', '1000'],
        events: [['topup.failed', 'failed', 1_000, 1_000]],
        answer: [202, 'pending'],
        ...RELEASED,
      });
    }
    const refused = { topUp: null, events: [], answer: [409, 'invalid_state'], ...RELEASED };
    assert.deepEqual(await state(unanswered), refused);

    for (const claimId of [...accepted, unanswered]) {
      await completeTransfer(commands.context, claimId);
      await acceptTransfer(commands.context, claimId);
      assert.equal(await begun(beginTopUp, commands.context, claimId), 'answered');
    }
    assert.deepEqual(await state(unanswered), refused);
    assert.deepEqual(await block(), []);
  });

  it('takes as many statements for hundreds of top-ups as for two', async () => {
    const pending = async (count: number) => {
      const claims: string[] = [];
      while (claims.length < count) claims.push(await hold(100));
      for (const claimId of claims.slice(count / 2)) await acceptTransfer(commands.context, claimId);
      return claims;
    };
    const blockCounted = async () => {
      const { texts, stop } = countStatements(commands.databaseUrl);
      try {
        const answered = await block();
        // A connection's first transaction prepares BEGIN.
        return { answered, statements: texts.filter((text) => !/^begin/i.test(text)).length };
      } finally {
        stop();
      }
    };
    await pending(2);
    const { statements } = await blockCounted();
    await query(commands.context.orm.em.fork(), `UPDATE card SET status = 'active' WHERE id = $1`, [
      card.cardId,
    ]);
    const claims = await pending(100);
    const many = await blockCounted();
    assert.equal(many.statements, statements);
    assert.deepEqual(many.answered.sort(), claims.slice(0, 50).sort());
    const states: Awaited<ReturnType<typeof state>>[] = [];
    for (const claimId of claims) states.push(await state(claimId));
    for (const { topUp, answer, cents, usage } of states.slice(0, 50)) {
      assert.deepEqual([topUp, answer], [null, [409, 'invalid_state']]);
      assert.deepEqual([cents, usage], [RELEASED.cents, RELEASED.usage]);
    }
    for (const { topUp, events, answer } of states.slice(50)) {
      assert.deepEqual(topUp, ['failed', 'card_blocked', '1000']);
      assert.deepEqual([events, answer], [[['topup.failed', 'failed', 1_000, 1_000]], [202, 'pending']]);
    }
    const watched = `SELECT count(*)::int AS count FROM late_answer WHERE card_id = $1`;
    assert.deepEqual(await query(commands.context.orm.em.fork(), watched, [card.cardId]), [{ count: 102 }]);
  });

  it('ends many in batches while the card is as it was, and whoever tries again blocks it with the rest', async () => {
    const claims = await Promise.all(Array.from({ length: 6 }, () => hold(1_000)));
    for (const claimId of claims.slice(3)) await acceptTransfer(commands.context, claimId);
    const blockId = await commands.claimOf('block_card', card, {});
    await beginStatusChange(commands.context, blockId);
    const early = await failMostTopUps(commands.context, blockId, 2);
    const left = await Promise.all(claims.map(async (id) => (await state(id)).topUp?.[0] === 'pending'));
    assert.equal(left.filter(Boolean).length, 2);
    const { rows } = await commands.owner.query('SELECT status FROM card WHERE id = $1', [card.cardId]);
    assert.deepEqual(rows, [{ status: 'active' }]);
    assert.deepEqual(await failMostTopUps(commands.context, blockId, 2), []);

    const { response, topUpClaimIds } = await completeStatusChange(commands.context, blockId);
    assert.deepEqual([...early, ...topUpClaimIds].sort(), claims.slice(0, 3).sort());
    const { status, balance } = JSON.parse(response?.body ?? '');
    assert.deepEqual([status, balance], ['blocked', 0]);
    const states: Awaited<ReturnType<typeof state>>[] = [];
    for (const claimId of claims) states.push(await state(claimId));
    assert.deepEqual(
      states.map(({ topUp, answer }) => [topUp?.[1] ?? null, answer?.[0]]),
      claims.map((_, index) => (index < 3 ? [null, 409] : ['card_blocked', 202])),
    );
    assert.deepEqual(
      [states[0]?.cents, states[0]?.usage],
      [
        [FUNDS + 1_000, 0],
        [0, 1_000],
      ],
    );
  });

  it('leaves the top-ups of a card that is frozen', async () => {
    const claimId = await hold(1_000);
    const freezeId = await commands.claimOf('freeze_card', card, {});
    await beginStatusChange(commands.context, freezeId);
    assert.deepEqual(await failMostTopUps(commands.context, freezeId, 0), []);
    assert.equal((await state(claimId)).topUp?.[0], 'pending');
  });

  it('leaves top-ups that have ended, and other cards, as they are', async () => {
    const loaded = await hold(2_000);
    await completeTransfer(commands.context, loaded);
    const otherCard = { ...card, cardId: await commands.createActiveCard(card.partnerId, 'live', 1_000) };
    const other = await commands.claimOf('top_up_card', otherCard, { amount: 2_000 });
    await begun(beginTopUp, commands.context, other);
    const before = [await state(loaded), await stateOf(commands, { ...otherCard, claimId: other })];
    assert.deepEqual(await block(), []);
    assert.deepEqual(
      [await state(loaded), await stateOf(commands, { ...otherCard, claimId: other })],
      before,
    );
  });

  it('ends each top-up once, whether a new request, the network or the block comes first', async () => {
    const claims = await Promise.all(Array.from({ length: 6 }, () => hold(1_000)));
    const late = await Promise.all(Array.from({ length: 4 }, () => claim(1_000)));
    await Promise.all([
      ...late.map((claimId) => begun(beginTopUp, commands.context, claimId)),
      ...claims.map((claimId, index) =>
        index % 2 === 0
          ? completeTransfer(commands.context, claimId)
          : acceptTransfer(commands.context, claimId),
      ),
      block(),
    ]);
    const states = await Promise.all([...claims, ...late].map(state));
    const loaded = states.filter(({ topUp }) => topUp?.[0] === 'succeeded').length;
    for (const { topUp, answer } of states) {
      const ends = [
        ['succeeded', 201],
        ['failed', 202],
        [null, 409],
      ];
      assert.ok(ends.some(([status, code]) => (topUp?.[0] ?? null) === status && answer?.[0] === code));
    }
    const debited = loaded * 1_050;
    const [now] = states;
    assert.deepEqual(
      [now?.cents, now?.card, now?.usage],
      [[FUNDS - debited, 0], 1_000 + loaded * 1_000, [1, 1_000 + loaded * 1_000]],
    );
  });
});
