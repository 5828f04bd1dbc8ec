import assert from 'node:assert/strict';
import { creditPayments } from '../../deposits/credit-payments.ts';
import { resolveTestDeposit } from '../../deposits/resolve.ts';
import { findDueTestDeposits, openTestDeposit, playTestDeposits } from '../../deposits/test-deposits.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { keyedRequest, openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { CUTS, type Cuts, cutCommits, type When } from '../support/crash/cut-commits.ts';
import { depositEvents } from '../support/deposits/payments.ts';

const FUNDS = 1_000;

describe('a test deposit whose processes die', () => {
  let commands: TestCommands;
  let partnerId: string;
  let cuts: Cuts;
  before(async () => {
    commands = await openCommands();
    cuts = cutCommits();
  });
  after(async () => {
    cuts.undo();
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  const em = () => commands.context.orm.em.fork();
  const testCents = async () => (await readBalance(em(), partnerId, 'test')).totalCents;
  const due = async () =>
    (await findDueTestDeposits(em(), { after: null, except: [], limit: 100 })).find(
      (account) => account.partnerId === partnerId,
    );
  /** Does it as a process that dies at its COMMIT, and then as the next one. */
  async function twice<Result>(when: When, parameter: string, work: () => Promise<Result>): Promise<Result> {
    cuts.arm(when, parameter);
    await assert.rejects(work(), /terminated/);
    return work();
  }
  /** The deposits' next due time has come. */
  const passTime = () =>
    commands.owner.query(
      `UPDATE deposit SET created_at = created_at - interval '9 hours', expires_at = expires_at - interval '9 hours',
         due_at = due_at - interval '9 hours' WHERE partner_id = $1 AND due_at > now()`,
      [partnerId],
    );
  /** Does all that is due, for the late deposit twice, and judges what has arrived. */
  async function playAll(when: When, depositIds: string[]): Promise<void> {
    await passTime();
    for (let account = await due(); account !== undefined; account = await due()) {
      const found = account;
      await twice(when, partnerId, () => playTestDeposits(commands.context.orm, found));
    }
    await twice(when, depositIds[0] ?? '', () => creditPayments(commands.context.orm, depositIds));
  }

  for (const [when] of CUTS) {
    it(`${when === 'before' ? 'before' : 'right after'} each COMMIT is opened, paid, expired and resolved once`, async () => {
      partnerId = await commands.createFundedPartner(FUNDS);
      const opened = new Map<string, string>();
      for (const payment of ['exact', 'short', 'late', 'none'] as const) {
        const request = keyedRequest(
          'create_test_deposit',
          null,
          { payment },
          {
            ...{ partnerId, mode: 'test', key: `open-${payment}` },
          },
        );
        const { response } = await twice(when, `open-${payment}`, () =>
          openTestDeposit(commands.context, request, { amountCents: 2_000, payment }),
        );
        opened.set(payment, JSON.parse(response.body).id);
      }
      const { rows } = await commands.owner.query('SELECT FROM deposit WHERE partner_id = $1', [partnerId]);
      assert.equal(rows.length, 4);
      await playAll(when, [...opened.values()]);
      const short = opened.get('short') ?? '';
      const request = keyedRequest(
        'resolve_test_deposit',
        null,
        {},
        { partnerId, mode: 'test', key: 'resolve' },
      );
      await twice(when, 'resolve', () => resolveTestDeposit(commands.context, request, short, 'credited'));

      const events = async (payment: string) =>
        (await depositEvents(commands.context.orm, opened.get(payment) ?? '')).map(([type]) => type);
      assert.deepEqual(await events('exact'), ['deposit.confirmed']);
      assert.deepEqual(await events('short'), ['deposit.needs_review', 'deposit.confirmed']);
      assert.deepEqual(await events('late'), ['deposit.expired', 'deposit.needs_review']);
      assert.deepEqual(await events('none'), ['deposit.expired']);
      const { rows: payments } = await commands.owner.query(
        `SELECT count(*)::int AS n FROM deposit_payment WHERE partner_id = $1 AND mode = 'test'`,
        [partnerId],
      );
      assert.deepEqual(payments, [{ n: 3 }]);
      assert.equal(await testCents(), FUNDS + 2_000 + 1_000);
    });
  }
});
