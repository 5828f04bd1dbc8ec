import assert from 'node:assert/strict';
import { beginStatusChange, completeStatusChange, refuseStatusChange } from '../../cards/change-status.ts';
import type { StatusChangeOperation } from '../../domain/card-status.ts';
import type { Mode } from '../../domain/mode.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { query } from '../../platform/db/sql.ts';
import { begun, openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { untilWaiting } from '../support/commands/until-waiting.ts';

const TIMES = Array.from({ length: 10 }, (_, index) => index);

describe('a status change by a workflow', () => {
  let commands: TestCommands;
  let card: { partnerId: string; mode: Mode; cardId: string };
  before(async () => {
    commands = await openCommands();
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  async function newCard(mode: Mode): Promise<void> {
    const partnerId = await commands.createFundedPartner(100_000);
    card = { partnerId, mode, cardId: await commands.createActiveCard(partnerId, mode, 1_000) };
  }
  const claim = (operation: StatusChangeOperation) => commands.claimOf(operation, card, {});
  const begin = (claimId: string) => begun(beginStatusChange, commands.context, claimId);
  const end = (claimId: string, decision: 'applied' | 'refused') =>
    (decision === 'applied' ? completeStatusChange : refuseStatusChange)(commands.context, claimId);
  /** The card's status, the claim under way, its events, and how its claims are answered. */
  async function state() {
    const em = commands.context.orm.em.fork();
    const [row] = await query<{ status: string; under_way: string | null }>(
      em,
      'SELECT status, status_change_claim_id AS under_way FROM card WHERE id = $1',
      [card.cardId],
    );
    const events = await query<{ type: string }>(
      em,
      'SELECT type FROM event WHERE card_id = $1 ORDER BY id',
      [card.cardId],
    );
    const claims = await query<{ status: number | null }>(
      em,
      'SELECT response_status AS status FROM idempotency_claim WHERE card_id = $1 ORDER BY created_at',
      [card.cardId],
    );
    const [, ...changed] = events.map(({ type }) => type);
    return [row?.status, row?.under_way, changed, claims.map(({ status }) => status)];
  }

  it('cannot end before it begins', async () => {
    await newCard('live');
    const [freeze, block] = [await claim('freeze_card'), await claim('block_card')];
    await begin(freeze);
    await assert.rejects(end(block, 'applied'), /is not under way/);
    assert.deepEqual(await state(), ['active', freeze, [], [null, null]]);
  });

  it('waits for every older one that has no answer, although it is asked for its turn first', async () => {
    await newCard('live');
    const [freeze, unfreeze] = [await claim('freeze_card'), await claim('unfreeze_card')];
    const again = await claim('freeze_card');
    assert.equal(await begin(freeze), 'begun');
    assert.equal(await begin(again), 'busy');
    await end(freeze, 'applied');
    assert.equal(await begin(again), 'busy');
    for (const claimId of [unfreeze, again]) {
      assert.equal(await begin(claimId), 'begun');
      await end(claimId, 'applied');
    }
    const changed = ['card.frozen', 'card.unfrozen', 'card.frozen'];
    assert.deepEqual(await state(), ['frozen', null, changed, [200, 200, 200]]);
  });

  it('waits for no older one if it is a block, and those are then refused', async () => {
    await newCard('live');
    const [freeze, block] = [await claim('freeze_card'), await claim('block_card')];
    assert.equal(await begin(block), 'begun');
    await end(block, 'applied');
    assert.equal(await begin(freeze), 'answered');
    assert.deepEqual(await state(), ['blocked', null, ['card.blocked'], [409, 200]]);
  });

  it('has one end if both are reported at once, again and again', async () => {
    await newCard('live');
    const block = await claim('block_card');
    await begin(block);
    await Promise.all(TIMES.map((index) => end(block, index % 2 === 0 ? 'applied' : 'refused')));
    const [status, underWay, events, [answer]] = (await state()) as [string, null, string[], number[]];
    assert.equal(underWay, null);
    assert.deepEqual(
      [status, events, answer],
      status === 'blocked' ? ['blocked', ['card.blocked'], 200] : ['active', [], 409],
    );
  });

  describe("of a test card, by an operator's claim,", () => {
    for (const operation of ['freeze_card', 'unfreeze_card', 'block_card'] as const) {
      it(`is dated by the account's clock if it is ${operation}`, async () => {
        await newCard('test');
        await commands.owner.query(
          `INSERT INTO test_clock_advance (partner_id, advanced_at, seconds_before, offset_seconds, shows)
           VALUES ($1, now(), 0, 2592000, now() + interval '30 days')`,
          [card.partnerId],
        );
        if (operation === 'unfreeze_card') await begin(await claim('freeze_card'));
        assert.equal(await begin(await claim(operation)), 'answered');
        const { rows } = await commands.owner.query(
          `SELECT (body::jsonb ->> 'created')::timestamptz > now() + interval '29 days' AS is_in_time
           FROM event WHERE card_id = $1 ORDER BY id DESC LIMIT 1`,
          [card.cardId],
        );
        assert.deepEqual(rows, [{ is_in_time: true }]);
      });
    }

    it('waits for an advance of the clock before it locks anything', async () => {
      await newCard('test');
      const claimId = await claim('block_card');
      const advancing = await commands.connect();
      await advancing.query('BEGIN');
      await advancing.query('SELECT lock_test_clock_alone($1)', [card.partnerId]);
      const blocking = begin(claimId);
      await untilWaiting(commands);
      await advancing.query('SELECT FROM account_usage WHERE partner_id = $1 FOR UPDATE NOWAIT', [
        card.partnerId,
      ]);
      await advancing.query('SELECT FROM idempotency_claim WHERE id = $1 FOR UPDATE NOWAIT', [claimId]);
      await advancing.end();
      assert.equal(await blocking, 'answered');
    });
  });
});
