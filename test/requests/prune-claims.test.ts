import assert from 'node:assert/strict';
import { acceptIssuance } from '../../cards/end-issuance.ts';
import { beginIssuance } from '../../cards/issue.ts';
import { beginTransfer } from '../../cards/transfers/begin.ts';
import { acceptTransfer, completeTransfer } from '../../cards/transfers/end.ts';
import { query } from '../../platform/db/sql.ts';
import { pruneClaims } from '../../requests/abandoned-claims.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';

const BODY = { amount: 1_000, external_ref: 'r' };

describe('old claims', () => {
  let commands: TestCommands;
  let partnerId: string;
  before(async () => {
    commands = await openCommands();
    partnerId = await commands.createFundedPartner(100_000);
  });
  beforeEach(() => commands.owner.query('DELETE FROM idempotency_claim'));
  after(() => commands.close());

  const claimCard = async (external_ref: string) => {
    const claim = await commands.claimCard({ partnerId, mode: 'live', request: { ...BODY, external_ref } });
    assert.ok(claim.outcome === 'claimed');
    return claim;
  };
  const age = (days: number) =>
    commands.owner.query(`UPDATE idempotency_claim SET created_at = now() - $1 * interval '1 day'`, [days]);
  const prune = () => pruneClaims(commands.context.orm, 100);
  const left = async () => {
    const rows = await query<{ id: string }>(
      commands.context.orm.em.fork(),
      'SELECT id FROM idempotency_claim',
    );
    return rows.map(({ id }) => id);
  };

  it('are kept while they have no response', async () => {
    const { claimId } = await claimCard('unanswered');
    await age(32);
    assert.equal(await prune(), 0);
    assert.deepEqual(await left(), [claimId]);
  });

  it('are kept while their card, top-up or withdrawal is pending', async () => {
    const { context } = commands;
    const { claimId, resourceId } = await claimCard('pending');
    await beginIssuance(context, claimId);
    await acceptIssuance(context, claimId);
    const cardId = await commands.createActiveCard(partnerId, 'live', 1_000);
    const about = { partnerId, mode: 'live', cardId } as const;
    const topUp = await commands.claimOf('top_up_card', about, { amount: 100 });
    await beginTransfer(context, topUp, 'topup');
    await acceptTransfer(context, topUp);
    const withdrawal = await commands.claimOf('withdraw_from_card', about, { amount: 100 });
    await beginTransfer(context, withdrawal, 'withdrawal');
    await acceptTransfer(context, withdrawal);
    await age(32);
    assert.equal(await prune(), 1);
    assert.deepEqual((await left()).sort(), [claimId, topUp, withdrawal].sort());
    const { rows } = await commands.owner.query('SELECT claim_id FROM card WHERE id = $1', [resourceId]);
    assert.deepEqual(rows, [{ claim_id: claimId }]);

    await completeTransfer(context, topUp);
    await completeTransfer(context, withdrawal);
    assert.equal(await prune(), 2);
    assert.deepEqual(await left(), [claimId]);
  });

  it('are removed after 31 days, without a write to their cards', async () => {
    const cards = [
      await commands.createActiveCard(partnerId, 'live', 1_000),
      await commands.createActiveCard(partnerId, 'test', 1_000),
    ];
    const versions = async () =>
      (await commands.owner.query('SELECT xmin::text, claim_id FROM card WHERE id = ANY ($1)', [cards])).rows;
    const before = await versions();
    assert.deepEqual(
      before.map(({ claim_id }) => claim_id),
      [null, null],
    );
    await age(30);
    assert.equal(await prune(), 0);
    await age(32);
    assert.equal(await prune(), 2);
    assert.deepEqual(await versions(), before);
  });
});
