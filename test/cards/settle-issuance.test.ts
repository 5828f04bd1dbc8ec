import assert from 'node:assert/strict';
import { acceptIssuance, completeIssuance, failIssuance } from '../../cards/end-issuance.ts';
import { beginIssuance } from '../../cards/issue.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { query } from '../../platform/db/sql.ts';
import { readClaimResponse } from '../../requests/response.ts';
import { begun, openCommands, type TestCommands } from '../support/commands/open-commands.ts';

const FUNDS = 10_000;
/** 1,000 cents with 100 for the activation and 50 for the funding. */
const DEBITED = 1_150;
const ISSUED = { last4: '4242', expMonth: 12, expYear: 2030 };

describe('a live issuance', () => {
  let commands: TestCommands;
  let partnerId: string;
  let claimId: string;
  let cardId: string;
  before(async () => {
    commands = await openCommands();
  });
  beforeEach(async () => {
    partnerId = await commands.createFundedPartner(FUNDS);
    const claim = await commands.claimCard({
      ...{ partnerId, mode: 'live', request: { amount: 1_000, external_ref: 'r' } },
    });
    assert.ok(claim.outcome === 'claimed');
    ({ claimId, resourceId: cardId } = claim);
    assert.equal(await begun(beginIssuance, commands.context, claimId), 'held');
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  const accept = () => acceptIssuance(commands.context, claimId);
  const activate = () => completeIssuance(commands.context, claimId, { ...ISSUED, networkCardId: claimId });
  const fail = () => failIssuance(commands.context, claimId, 'issuance_failed');
  /** Status of the card, its events, status of the answer, available and held cents, open cards and loaded cents. */
  const state = async () => {
    const em = commands.context.orm.em.fork();
    const [card] = await query<{ status: string }>(em, 'SELECT status FROM card WHERE id = $1', [cardId]);
    const events = await query<{ type: string }>(em, 'SELECT type FROM event WHERE partner_id = $1', [
      partnerId,
    ]);
    const [usage] = await query<{ open: number; loaded: number }>(
      em,
      `SELECT open_cards AS open, loaded_cents::int AS loaded FROM account_usage WHERE partner_id = $1 AND mode = 'live'`,
      [partnerId],
    );
    const { availableCents, heldCents } = await readBalance(em, partnerId, 'live');
    return {
      card: card?.status ?? null,
      events: events.map((event) => event.type),
      answer: (await readClaimResponse(commands.context, claimId))?.status ?? null,
      cents: [availableCents, heldCents],
      usage: [usage?.open, usage?.loaded],
    };
  };
  const HELD = { card: 'funding_pending', events: [], cents: [FUNDS - DEBITED, DEBITED], usage: [1, 1_000] };
  const ACTIVE = { card: 'active', events: ['card.issued'], cents: [FUNDS - DEBITED, 0], usage: [1, 1_000] };
  const RELEASED = { cents: [FUNDS, 0], usage: [0, 0] };
  const FAILED = { card: 'failed', events: ['card.issue_failed'], ...RELEASED };

  it('waits with its money held', async () => assert.deepEqual(await state(), { ...HELD, answer: null }));

  const ENDS: [what: string, steps: () => (() => Promise<unknown>)[], end: object][] = [
    ['stays held and answers 202 once it is accepted', () => [accept], { ...HELD, answer: 202 }],
    ['answers 201 if it is issued in time', () => [activate], { ...ACTIVE, answer: 201 }],
    [
      'keeps the 202 as its answer if it is issued later',
      () => [accept, activate],
      { ...ACTIVE, answer: 202 },
    ],
    [
      'answers 402 without a card or an event if it is refused in time',
      () => [fail],
      { card: null, events: [], ...RELEASED, answer: 402 },
    ],
    ['leaves a failed card if it fails after the 202', () => [accept, fail], { ...FAILED, answer: 202 }],
    ['stays issued if a failure is reported later', () => [activate, fail], { ...ACTIVE, answer: 201 }],
    [
      'stays failed if an issuance is reported later',
      () => [accept, fail, activate],
      { ...FAILED, answer: 202 },
    ],
    ['stays ended if it is accepted too late', () => [activate, accept], { ...ACTIVE, answer: 201 }],
  ];
  for (const [what, steps, end] of ENDS) {
    it(`${what}, however often each step runs`, async () => {
      for (const step of steps()) for (let run = 0; run < 3; run++) await step();
      assert.deepEqual(await state(), end);
      assert.equal(
        await begun(beginIssuance, commands.context, claimId),
        what.startsWith('stays held') ? 'held' : 'answered',
      );
      assert.deepEqual(await state(), end);
    });
  }

  it('has one end if both are reported at once, again and again', async () => {
    await accept();
    await Promise.all([
      activate(),
      fail(),
      activate(),
      fail(),
      accept(),
      begun(beginIssuance, commands.context, claimId),
    ]);
    const { card } = await state();
    assert.ok(card === 'active' || card === 'failed');
    assert.deepEqual(await state(), { ...(card === 'active' ? ACTIVE : FAILED), answer: 202 });
  });

  it('frees only the open card, not the amount, if it fails on another day', async () => {
    await accept();
    await commands.owner.query(
      `UPDATE account_usage SET loaded_on = loaded_on + 1, loaded_cents = 7 WHERE partner_id = $1 AND mode = 'live'`,
      [partnerId],
    );
    await fail();
    assert.deepEqual((await state()).usage, [0, 7]);
  });
});
