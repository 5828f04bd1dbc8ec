import assert from 'node:assert/strict';
import { acceptIssuance, completeIssuance, failIssuance } from '../../cards/end-issuance.ts';
import { beginIssuance } from '../../cards/issue.ts';
import { decideIssuance, decideTransfer } from '../../cards/resolve.ts';
import { acceptTransfer, completeTransfer, failTransfer } from '../../cards/transfers/end.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { query } from '../../platform/db/sql.ts';
import { readClaimResponse } from '../../requests/response.ts';
import { resourceOf } from '../support/claims.ts';
import { begun, openCommands, readUsage, type TestCommands } from '../support/commands/open-commands.ts';
import { beginTopUp, stateOf } from '../support/commands/transfers.ts';
import { untilWaiting } from '../support/commands/until-waiting.ts';

/** A live operation that holds money, and its steps. */
interface Funding {
  begin(): Promise<string>;
  accept(): Promise<unknown>;
  succeed(): Promise<unknown>;
  fail(): Promise<unknown>;
  /** An operator's decision on it. */
  decide(): Promise<void>;
  /** Everything it changes. Cents are available and held ones, usage is open cards and loaded cents. */
  state(): Promise<object>;
}

interface Kind {
  name: string;
  /** What it is before and after each end, without its answer. */
  held: object;
  done: object;
  failed: object;
  /** Refused before it had an answer. */
  gone: object;
  answers: { accepted: unknown; succeeded: unknown; refused: unknown };
  /** Usage after a failure on the next day, in which 7 cents were loaded. */
  nextDay: number[];
  table: 'card' | 'card_transfer';
  open(commands: TestCommands): Promise<Funding & { partnerId: string; claimId: string }>;
}

/** Any operation is past this deadline. */
const BY_HAND = { reason: 'a test', deadlineMs: 0 };

const released = { cents: [10_000, 0], usage: [0, 0] };
/** 1,000 cents with 100 for the activation and 50 for the funding. */
const ISSUANCE: Kind = {
  name: 'issuance',
  held: { is: 'funding_pending', events: [], cents: [8_850, 1_150], usage: [1, 1_000] },
  done: { is: 'active', events: ['card.issued'], cents: [8_850, 0], usage: [1, 1_000] },
  failed: { is: 'failed', events: ['card.issue_failed'], ...released },
  gone: { is: null, events: [], ...released },
  answers: { accepted: 202, succeeded: 201, refused: 402 },
  // The open card is freed all the same.
  nextDay: [0, 7],
  table: 'card',
  async open(commands) {
    const { context } = commands;
    const partnerId = await commands.createFundedPartner(10_000);
    const request = { amount: 1_000, external_ref: 'r' };
    const claim = await commands.claimCard({ partnerId, mode: 'live', request });
    assert.ok(claim.outcome === 'claimed');
    const { claimId, resourceId: cardId } = claim;
    const issued = { last4: '4242', expMonth: 12, expYear: 2030, networkCardId: claimId };
    return {
      ...{ partnerId, claimId },
      begin: () => begun(beginIssuance, context, claimId),
      accept: () => acceptIssuance(context, claimId),
      succeed: () => completeIssuance(context, claimId, issued),
      fail: () => failIssuance(context, claimId, 'issuance_failed'),
      decide: () => decideIssuance(commands.operator, { cardId, outcome: 'issued', ...BY_HAND }),
      async state() {
        const em = context.orm.em.fork();
        const [card] = await query<{ status: string }>(em, 'SELECT status FROM card WHERE id = $1', [cardId]);
        const told = 'SELECT type FROM event WHERE partner_id = $1';
        const events = await query<{ type: string }>(em, told, [partnerId]);
        const { availableCents, heldCents } = await readBalance(em, partnerId, 'live');
        return {
          is: card?.status ?? null,
          events: events.map(({ type }) => type),
          answer: (await readClaimResponse(context, claimId))?.status ?? null,
          cents: [availableCents, heldCents],
          usage: await readUsage(commands, partnerId, 'live'),
        };
      },
    };
  },
};

/** What is left of 10,000 cents after a card of 1,000 with its fees. */
const FUNDS = 8_850;
const unloaded = { cents: [FUNDS, 0], card: 1_000, usage: [1, 1_000] };
/** 2,000 cents with 50 for the funding. */
const TOP_UP: Kind = {
  name: 'top-up',
  held: {
    ...{ topUp: ['pending', null, null], events: [] },
    ...{ cents: [FUNDS - 2_050, 2_050], card: 1_000, usage: [1, 3_000] },
  },
  done: {
    ...{ topUp: ['succeeded', null, '3000'], events: [['topup.succeeded', 'succeeded', 3_000, 3_000]] },
    ...{ cents: [FUNDS - 2_050, 0], card: 3_000, usage: [1, 3_000] },
  },
  failed: {
    ...{ topUp: ['failed', 'topup_failed', '1000'], events: [['topup.failed', 'failed', 1_000, 1_000]] },
    ...unloaded,
  },
  gone: { topUp: null, events: [], ...unloaded },
  answers: {
    ...{ accepted: [202, 'pending'], succeeded: [201, 'succeeded'], refused: [402, 'provider_declined'] },
  },
  nextDay: [1, 7],
  table: 'card_transfer',
  async open(commands) {
    const { context } = commands;
    const partnerId = await commands.createFundedPartner(10_000);
    const cardId = await commands.createActiveCard(partnerId, 'live', 1_000);
    const about = { partnerId, mode: 'live', cardId } as const;
    const claimId = await commands.claimOf('top_up_card', about, { amount: 2_000 });
    return {
      ...{ partnerId, claimId },
      begin: () => begun(beginTopUp, context, claimId),
      accept: () => acceptTransfer(context, claimId),
      succeed: () => completeTransfer(context, claimId),
      fail: () => failTransfer(context, claimId, 'topup_failed'),
      decide: async () => {
        const id = await resourceOf(context, claimId);
        const decided = { direction: 'topup', id, outcome: 'succeeded' } as const;
        await decideTransfer(commands.operator, { ...decided, ...BY_HAND });
      },
      state: () => stateOf(commands, { ...about, claimId }),
    };
  },
};

type Step = 'accept' | 'succeed' | 'fail';

for (const { name, held, done, failed, gone, answers, nextDay, table, open } of [ISSUANCE, TOP_UP]) {
  describe(`a live ${name}`, () => {
    let commands: TestCommands;
    let one: Awaited<ReturnType<typeof open>>;
    before(async () => {
      commands = await openCommands();
    });
    beforeEach(async () => {
      one = await open(commands);
      assert.equal(await one.begin(), 'held');
    });
    after(async () => {
      assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
      await commands.close();
    });

    const { accepted, succeeded, refused } = answers;
    for (const [what, steps, end] of [
      ['waits with its money held', [], { ...held, answer: null }],
      ['stays held and answers 202 once it is accepted', ['accept'], { ...held, answer: accepted }],
      ['answers 201 if it succeeds in time', ['succeed'], { ...done, answer: succeeded }],
      ['keeps the 202 if it succeeds later', ['accept', 'succeed'], { ...done, answer: accepted }],
      ['answers 402 and leaves nothing if it is refused in time', ['fail'], { ...gone, answer: refused }],
      ['has failed if it fails after the 202', ['accept', 'fail'], { ...failed, answer: accepted }],
      ['stays done if a failure is reported later', ['succeed', 'fail'], { ...done, answer: succeeded }],
      [
        'stays failed if a success is reported later',
        ['accept', 'fail', 'succeed'],
        { ...failed, answer: accepted },
      ],
      ['stays ended if it is accepted too late', ['succeed', 'accept'], { ...done, answer: succeeded }],
    ] as [string, Step[], { answer: unknown }][]) {
      it(`${what}, however often each step runs`, async () => {
        for (const step of steps) for (let run = 0; run < 3; run++) await one[step]();
        assert.deepEqual(await one.state(), end);
        const isHeld = steps.every((step) => step === 'accept');
        assert.equal(await one.begin(), isHeld ? 'held' : 'answered');
        assert.deepEqual(await one.state(), end);
      });
    }

    it('has one end if both are reported at once, again and again', async () => {
      await one.accept();
      const { begin, accept, succeed, fail } = one;
      await Promise.all([succeed(), fail(), succeed(), fail(), accept(), begin()]);
      const now = await one.state();
      const { usage } = now as { usage: number[] };
      const isDone = JSON.stringify(usage) === JSON.stringify((done as { usage: number[] }).usage);
      assert.deepEqual(now, { ...(isDone ? done : failed), answer: accepted });
    });

    it('holds nothing that a worker needs while an operator waits to decide on it', async () => {
      await one.accept();
      const worker = await commands.connect();
      await worker.query('BEGIN');
      await worker.query('SELECT FROM idempotency_claim WHERE id = $1 FOR NO KEY UPDATE', [one.claimId]);
      const deciding = one.decide();
      await untilWaiting(commands);
      await worker.query(`SELECT FROM ${table} WHERE claim_id = $1 FOR NO KEY UPDATE NOWAIT`, [one.claimId]);
      await worker.end();
      await deciding;
    });

    it('frees nothing of a day that began since', async () => {
      await one.accept();
      await commands.owner.query(
        `UPDATE account_usage SET loaded_on = loaded_on + 1, loaded_cents = 7 WHERE partner_id = $1 AND mode = 'live'`,
        [one.partnerId],
      );
      await one.fail();
      assert.deepEqual(await readUsage(commands, one.partnerId, 'live'), nextDay);
    });
  });
}
