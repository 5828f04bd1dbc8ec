import assert from 'node:assert/strict';
import fc from 'fast-check';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import { negotiateFees, negotiateLimits } from '../../accounts/partners.ts';
import { changeStatusInTestMode } from '../../cards/change-in-test-mode.ts';
import { beginStatusChange, completeStatusChange } from '../../cards/change-status.ts';
import { transferInTestMode } from '../../cards/transfers/begin.ts';
import { completeTransfer, failTransfer } from '../../cards/transfers/end.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { Tenant } from '../../domain/mode.ts';
import { MAX_AMOUNT_CENTS as MAX } from '../../domain/money.ts';
import { Refusal } from '../../domain/refusal.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { readClaimResponse } from '../../requests/response.ts';
import { seedCard, settlementOf, settleOne } from '../support/commands/cards.ts';
import { begun, keyedRequest, openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { beginTopUp } from '../support/commands/transfers.ts';
import { balanceOfCard } from '../support/money.ts';
import { propertyRuns } from '../support/property-runs.ts';

const CARD_CENTS = 1_000;
const FREE_FUNDING = { cardActivationCents: 0, cardFundingBasisPoints: 0, cardFundingMinCents: 0 };
const FEES = { ...FREE_FUNDING, transactionFlatCents: 10, transactionBasisPoints: 50, declineFlatCents: 25 };

const cents = fc.oneof(
  fc.constantFrom(1, CARD_CENTS, MAX - CARD_CENTS, MAX - 1, MAX, Math.floor(MAX / 2)),
  fc.integer({ min: 1, max: MAX }),
);
const card = fc.constantFrom(0 as const, 1 as const);
/** What moves money at an account, of any amount the service takes; `hold` and `end` are a top-up in its two steps. */
const STEP = fc.oneof(
  fc.record({ kind: fc.constantFrom('credit' as const, 'debit' as const), cents, card }),
  fc.record({ kind: fc.constantFrom('purchase' as const, 'refund' as const), cents, card }),
  fc.record({ kind: fc.constantFrom('hold' as const, 'end' as const, 'fail' as const), cents, card }),
  fc.record({
    kind: fc.constantFrom('decline' as const, 'block' as const, 'half a block' as const),
    cents,
    card,
  }),
);
type Step = typeof STEP extends fc.Arbitrary<infer Drawn> ? Drawn : never;

describe('the service, with sums at the limit of safe integers,', () => {
  let commands: TestCommands;
  before(async () => {
    commands = await openCommands();
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });
  const operator = () => commands.operator;
  const balance = ({ partnerId, mode }: Tenant) =>
    readBalance(commands.context.orm.em.fork(), partnerId, mode);
  const onCard = (cardId: string) => balanceOfCard(commands.context.orm.em.fork(), cardId);
  const adjust = ({ partnerId, mode }: Tenant, amountCents: number) =>
    adjustBalance(operator(), { partnerId, mode, amountCents, reason: 'a test', key: null });

  async function account(mode: Tenant['mode']): Promise<Tenant & { cards: [string, string] }> {
    const tenant = { partnerId: await commands.createFundedPartner(10 * CARD_CENTS), mode };
    await negotiateFees(operator(), tenant.partnerId, FEES);
    const limits = { minCardCents: 1, maxCardCents: MAX, maxIssuedPerDayCents: MAX };
    await negotiateLimits(operator(), tenant.partnerId, limits);
    const seed = () => seedCard(commands, tenant, { balanceCents: CARD_CENTS });
    const cards: [string, string] = [await seed(), await seed()];
    // As their issuances would have.
    await commands.owner.query('UPDATE account_usage SET open_cards = 2 WHERE partner_id = $1', [
      tenant.partnerId,
    ]);
    return { ...tenant, cards };
  }

  it('answers everything in any order, and leaves nothing that cannot end', async () => {
    const script = fc.record({
      mode: fc.constantFrom('test' as const, 'live' as const, 'live' as const),
      steps: fc.array(STEP, { minLength: 4, maxLength: 16 }),
    });
    await fc.assert(fc.asyncProperty(script, play), { numRuns: propertyRuns(8) });
  });

  async function play({ mode, steps }: { mode: Tenant['mode']; steps: Step[] }): Promise<void> {
    const { context } = commands;
    const { partnerId, cards } = await account(mode);
    const tenant = { partnerId, mode };
    const held: string[] = [];
    const blocking: string[] = [];
    const answered = async (claimId: string) => {
      const status = (await readClaimResponse(context, claimId))?.status;
      assert.ok([400, 402, 409, 422].includes(status ?? 0), `the answer is ${status}`);
    };

    async function take({ kind, cents: amountCents, card: index }: Step): Promise<void> {
      const about = { ...tenant, cardId: cards[index] };
      if (kind === 'credit' || kind === 'debit') {
        await adjust(tenant, kind === 'credit' ? amountCents : -amountCents);
      } else if (kind === 'purchase' || kind === 'refund' || kind === 'decline') {
        const settlement = settlementOf(tenant, about.cardId, { type: kind, amountCents });
        await transaction(context.orm, (tx) => settleOne(tx, settlement));
      } else if (kind === 'end' || kind === 'fail') {
        const claimId = held.shift();
        if (claimId === undefined) return;
        await (kind === 'end'
          ? completeTransfer(context, claimId)
          : failTransfer(context, claimId, 'topup_failed'));
      } else if (kind === 'hold') {
        const body = { amount: amountCents };
        if (mode === 'test') {
          await transferInTestMode(context, keyedRequest('top_up_card', about.cardId, body, tenant), body);
          return;
        }
        const claimId = await commands.claimOf('top_up_card', about, body);
        if ((await begun(beginTopUp, context, claimId)) === 'held') held.push(claimId);
        else await answered(claimId);
      } else if (mode === 'test') {
        await changeStatusInTestMode(context, keyedRequest('block_card', about.cardId, {}, tenant));
      } else {
        const claimId = await commands.claimOf('block_card', about, {});
        const state = await begun(beginStatusChange, context, claimId);
        if (state === 'answered') await answered(claimId);
        if (state !== 'begun') return;
        if (kind === 'block') await completeStatusChange(context, claimId);
        // The network takes its time: the others come in between.
        else blocking.push(claimId);
      }
    }

    for (const step of steps) {
      await take(step).catch((error: unknown) => {
        if (!(error instanceof ApiError) && !(error instanceof Refusal)) throw error;
      });
      const { availableCents, totalCents } = await balance(tenant);
      assert.ok(Number.isSafeInteger(availableCents) && Number.isSafeInteger(totalCents));
    }
    for (const claimId of blocking) await completeStatusChange(context, claimId);
    for (const claimId of held) await completeTransfer(context, claimId);
    assert.equal((await balance(tenant)).heldCents, 0);
  }

  it('refuses a block whose release does not fit, and leaves the card unchanged, in test mode', async () => {
    const { cards, ...tenant } = await account('test');
    await adjust(tenant, MAX - (await balance(tenant)).totalCents - CARD_CENTS + 1);
    const request = keyedRequest('block_card', cards[0], {}, { ...tenant, key: 'k' });
    const refused = await changeStatusInTestMode(commands.context, request);
    assert.deepEqual([refused.replayed, refused.response.status], [false, 409]);
    assert.equal(JSON.parse(refused.response.body).error.code, 'invalid_state');
    assert.equal(await onCard(cards[0]), CARD_CENTS);

    await adjust(tenant, -1);
    const again = await changeStatusInTestMode(commands.context, request);
    assert.deepEqual([again.replayed, again.response], [true, refused.response]);
    const other = keyedRequest('block_card', cards[0], {}, { ...tenant, key: 'another' });
    assert.equal((await changeStatusInTestMode(commands.context, other)).response.status, 200);
    assert.equal((await balance(tenant)).totalCents, MAX);
  });

  it('refuses a block whose release does not fit before it asks the network, in live mode', async () => {
    const { cards, ...tenant } = await account('live');
    await adjust(tenant, MAX - (await balance(tenant)).totalCents - CARD_CENTS + 1);
    const about = { ...tenant, cardId: cards[0] };
    const claimId = await commands.claimOf('block_card', about, {});
    assert.equal(await begun(beginStatusChange, commands.context, claimId), 'answered');
    assert.equal((await readClaimResponse(commands.context, claimId))?.status, 409);
    assert.equal(await onCard(cards[0]), CARD_CENTS);
  });

  it('blocks a card that the network has blocked, and leaves on it what does not fit elsewhere', async () => {
    const { cards, ...tenant } = await account('live');
    const claimId = await commands.claimOf('block_card', { ...tenant, cardId: cards[0] }, {});
    assert.equal(await begun(beginStatusChange, commands.context, claimId), 'begun');
    await adjust(tenant, MAX - (await balance(tenant)).totalCents - 600);
    await completeStatusChange(commands.context, claimId);
    const response = await readClaimResponse(commands.context, claimId);
    const { status, balance: left } = JSON.parse(response?.body ?? '');
    assert.deepEqual([response?.status, status, left], [200, 'blocked', CARD_CENTS - 600]);
    assert.deepEqual([(await balance(tenant)).totalCents, await onCard(cards[0])], [MAX, CARD_CENTS - 600]);
  });

  it('leaves room for a pending top-up when the network reports transactions', async () => {
    const { cards, ...tenant } = await account('live');
    const about = { ...tenant, cardId: cards[0] };
    const claimId = await commands.claimOf('top_up_card', about, { amount: 500 });
    assert.equal(await begun(beginTopUp, commands.context, claimId), 'held');
    const refund = (amountCents: number) =>
      transaction(commands.context.orm, (tx) =>
        settleOne(tx, settlementOf(tenant, cards[0], { type: 'refund', amountCents })),
      );
    await assert.rejects(refund(MAX - CARD_CENTS - 499), { code: 'validation_failed' });
    await refund(MAX - CARD_CENTS - 500);
    await completeTransfer(commands.context, claimId);
    assert.equal(await onCard(cards[0]), MAX);
  });

  it('leaves room for what is held when debits overdraw the balance', async () => {
    const { cards, ...tenant } = await account('live');
    const claimId = await commands.claimOf('top_up_card', { ...tenant, cardId: cards[0] }, { amount: 500 });
    assert.equal(await begun(beginTopUp, commands.context, claimId), 'held');
    const blocked = await seedCard(commands, tenant, { status: 'blocked' });
    const debit = (amountCents: number) =>
      transaction(commands.context.orm, (tx) =>
        settleOne(tx, settlementOf(tenant, blocked, { amountCents })),
      );
    await negotiateFees(operator(), tenant.partnerId, {
      ...FEES,
      transactionFlatCents: 0,
      transactionBasisPoints: 0,
    });
    const { availableCents } = await balance(tenant);
    await debit(MAX);
    await assert.rejects(debit(availableCents + 1), { code: 'validation_failed' });
    await debit(availableCents);
    assert.equal((await balance(tenant)).availableCents, -MAX);
    await completeTransfer(commands.context, claimId);
    assert.deepEqual(await balance(tenant), { availableCents: -MAX, heldCents: 0, totalCents: -MAX });
  });
});
