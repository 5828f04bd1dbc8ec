import assert from 'node:assert/strict';
import { acceptIssuance } from '../../cards/end-issuance.ts';
import { beginIssuance } from '../../cards/issue.ts';
import { readBalance } from '../../ledger/balances.ts';
import { query } from '../../platform/db/sql.ts';
import { readClaimResponse } from '../../requests/response.ts';
import { begun, openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { until } from '../support/until.ts';

const REQUEST = { amount: 1_000, external_ref: 'r-1' };
/** Of 1,000 cents by the platform's plan: 100 for the activation, 50 for the funding. */
const DEBITED = 1_150;

describe('beginIssuance', () => {
  let commands: TestCommands;
  before(async () => {
    commands = await openCommands();
  });
  after(() => commands.close());

  const claimed = async (partnerId: string, mode: 'test' | 'live') => {
    const claim = await commands.claimCard({ partnerId, mode, request: REQUEST });
    assert.equal(claim.outcome, 'claimed');
    return claim.outcome === 'claimed' ? claim.claimId : '';
  };
  /** Lets none of the account's issuances begin while `work` gets them going. */
  const heldUp = async (partnerId: string, work: () => Promise<void>) => {
    const holder = await commands.connect();
    await holder.query('BEGIN');
    await holder.query('SELECT FROM account_usage WHERE partner_id = $1 FOR UPDATE', [partnerId]);
    try {
      await work();
    } finally {
      await holder.end();
    }
  };
  const waiting = (runs: number) =>
    until(`${runs} wait`, async () => {
      const { rowCount } = await commands.owner.query(
        `SELECT FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'commands-test' AND wait_event_type = 'Lock'`,
      );
      return rowCount === runs;
    });
  const usage = async (partnerId: string, mode: string) =>
    (
      await query<{ open_cards: number; loaded_cents: string }>(
        commands.context.orm.em.fork(),
        'SELECT open_cards, loaded_cents FROM account_usage WHERE partner_id = $1 AND mode = $2',
        [partnerId, mode],
      )
    )[0];

  it('holds the money once, however many runs of one claim meet at the lock, and refuses none', async () => {
    const partnerId = await commands.createFundedPartner(10_000);
    const claimId = await claimed(partnerId, 'live');
    const runs: Promise<string>[] = [];
    await heldUp(partnerId, async () => {
      for (let i = 0; i < 4; i++) runs.push(begun(beginIssuance, commands.context, claimId));
      await waiting(4);
    });
    assert.deepEqual(await Promise.all(runs), ['held', 'held', 'held', 'held']);
    assert.equal(await readClaimResponse(commands.context, claimId), null);
    const balance = await readBalance(commands.context.orm.em.fork(), partnerId, 'live');
    assert.deepEqual(balance, {
      availableCents: 10_000 - DEBITED,
      heldCents: DEBITED,
      totalCents: 10_000,
    });
    assert.deepEqual(await usage(partnerId, 'live'), { open_cards: 1, loaded_cents: '1000' });
  });

  it('returns held, not answered, if the claim was answered 202 while a run waited', async () => {
    const partnerId = await commands.createFundedPartner(10_000);
    const claimId = await claimed(partnerId, 'live');
    const runs: Promise<string>[] = [];
    await heldUp(partnerId, async () => {
      runs.push(
        begun(beginIssuance, commands.context, claimId).then((said) => {
          return acceptIssuance(commands.context, claimId).then(() => said);
        }),
      );
      await waiting(1);
      runs.push(begun(beginIssuance, commands.context, claimId));
      await waiting(2);
    });
    assert.deepEqual(await Promise.all(runs), ['held', 'held']);
    assert.equal(await begun(beginIssuance, commands.context, claimId), 'held');
    assert.equal((await readClaimResponse(commands.context, claimId))?.status, 202);
  });

  it('keeps a refusal, even if money has arrived by a later run', async () => {
    const partnerId = await commands.createFundedPartner(DEBITED - 1);
    const claimId = await claimed(partnerId, 'live');
    assert.equal(await begun(beginIssuance, commands.context, claimId), 'answered');
    const refusal = await readClaimResponse(commands.context, claimId);
    assert.equal(refusal?.status, 402);
    await commands.owner.query('UPDATE partner SET fee_plan = $1 WHERE id = $2', [
      {
        ...{ cardActivationCents: 0, cardFundingBasisPoints: 0, cardFundingMinCents: 0 },
        ...{ transactionFlatCents: 0, transactionBasisPoints: 0, declineFlatCents: 0 },
      },
      partnerId,
    ]);
    assert.equal(await begun(beginIssuance, commands.context, claimId), 'answered');
    assert.deepEqual(await readClaimResponse(commands.context, claimId), refusal);
    assert.deepEqual(await usage(partnerId, 'live'), { open_cards: 0, loaded_cents: '0' });
  });

  it('counts towards a day that began while it waited', async () => {
    const partnerId = await commands.createFundedPartner(10_000);
    const claimId = await claimed(partnerId, 'live');
    // What a transaction that waited over midnight finds: another one has begun the new day.
    await commands.owner.query(
      `UPDATE account_usage SET loaded_on = (now() AT TIME ZONE 'UTC')::date + 1, loaded_cents = 5 WHERE partner_id = $1`,
      [partnerId],
    );
    await begun(beginIssuance, commands.context, claimId);
    assert.deepEqual(await usage(partnerId, 'live'), { open_cards: 1, loaded_cents: '1005' });
  });
});
