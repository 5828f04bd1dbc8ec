import assert from 'node:assert/strict';
import { acceptTopUp, completeTopUp, failTopUp } from '../../../cards/transfers/end-top-up.ts';
import { beginTopUp } from '../../../cards/transfers/top-up.ts';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { begun, openCommands, type TestCommands } from '../../support/commands/open-commands.ts';
import { stateOf, type TopUpCase } from '../../support/commands/top-ups.ts';

/** What is left of 10,000 cents after a card of 1,000: 100 for the activation, 50 for the funding. */
const FUNDS = 10_000 - 1_150;
/** 2,000 cents with 50 for the funding. */
const AMOUNT = 2_000;
const DEBITED = 2_050;

describe('a live top-up', () => {
  let commands: TestCommands;
  let at: TopUpCase;
  before(async () => {
    commands = await openCommands();
  });
  beforeEach(async () => {
    const partnerId = await commands.createFundedPartner(10_000);
    const about = { partnerId, mode: 'live' as const };
    const cardId = await commands.createActiveCard(partnerId, 'live', 1_000);
    const claimId = await commands.claimOf('top_up_card', { ...about, cardId }, { amount: AMOUNT });
    at = { ...about, cardId, claimId };
    assert.equal(await begun(beginTopUp, commands.context, claimId), 'held');
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  const accept = () => acceptTopUp(commands.context, at.claimId);
  const succeed = () => completeTopUp(commands.context, at.claimId);
  const fail = () => failTopUp(commands.context, at.claimId, 'topup_failed');
  const state = () => stateOf(commands, at);

  const HELD = {
    ...{ topUp: ['pending', null, null], events: [] },
    ...{ cents: [FUNDS - DEBITED, DEBITED], card: 1_000, usage: [1, 3_000] },
  };
  const LOADED = {
    ...{ topUp: ['succeeded', null, '3000'], events: [['topup.succeeded', 'succeeded', 3_000, 3_000]] },
    ...{ cents: [FUNDS - DEBITED, 0], card: 3_000, usage: [1, 3_000] },
  };
  const RELEASED = { cents: [FUNDS, 0], card: 1_000, usage: [1, 1_000] };
  const FAILED = {
    ...{ topUp: ['failed', 'topup_failed', '1000'], events: [['topup.failed', 'failed', 1_000, 1_000]] },
    ...RELEASED,
  };
  const ACCEPTED = { answer: [202, 'pending'] };
  const SUCCEEDED = { answer: [201, 'succeeded'] };

  it('waits with its money held', async () => assert.deepEqual(await state(), { ...HELD, answer: null }));

  const ENDS: [what: string, steps: () => (() => Promise<unknown>)[], end: object][] = [
    ['stays held and answers 202 once it is accepted', () => [accept], { ...HELD, ...ACCEPTED }],
    ['answers 201 if it is loaded in time', () => [succeed], { ...LOADED, ...SUCCEEDED }],
    [
      'keeps the 202 as its answer if it is loaded later',
      () => [accept, succeed],
      { ...LOADED, ...ACCEPTED },
    ],
    [
      'answers 402 without a top-up or an event if it is refused in time',
      () => [fail],
      { topUp: null, events: [], ...RELEASED, answer: [402, 'provider_declined'] },
    ],
    ['is a failed top-up if it fails after the 202', () => [accept, fail], { ...FAILED, ...ACCEPTED }],
    ['stays loaded if a failure is reported later', () => [succeed, fail], { ...LOADED, ...SUCCEEDED }],
    ['stays failed if success is reported later', () => [accept, fail, succeed], { ...FAILED, ...ACCEPTED }],
    ['stays ended if it is accepted too late', () => [succeed, accept], { ...LOADED, ...SUCCEEDED }],
  ];
  for (const [what, steps, end] of ENDS) {
    it(`${what}, however often each step runs`, async () => {
      for (const step of steps()) for (let run = 0; run < 3; run++) await step();
      assert.deepEqual(await state(), end);
      const opening = await begun(beginTopUp, commands.context, at.claimId);
      assert.equal(opening, what.startsWith('stays held') ? 'held' : 'answered');
      assert.deepEqual(await state(), end);
    });
  }

  it('has one end if both are reported at once, again and again', async () => {
    await accept();
    const again = () => begun(beginTopUp, commands.context, at.claimId);
    await Promise.all([succeed(), fail(), succeed(), fail(), accept(), again()]);
    const now = await state();
    assert.deepEqual(now, { ...(now.card === 3_000 ? LOADED : FAILED), ...ACCEPTED });
  });

  it('frees nothing of a day that began since', async () => {
    await accept();
    await commands.owner.query(
      `UPDATE account_usage SET loaded_on = loaded_on + 1, loaded_cents = 7 WHERE partner_id = $1 AND mode = 'live'`,
      [at.partnerId],
    );
    await fail();
    assert.deepEqual((await state()).usage, [1, 7]);
  });
});
