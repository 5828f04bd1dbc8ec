import assert from 'node:assert/strict';
import type { Orm } from '../../platform/db/orm.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { pay, readDepositState, recordPayment } from '../support/deposits/payments.ts';
import { seedDeposits } from '../support/deposits/seed-deposits.ts';
import { ACTOR, lastAudit, type Operate, operateIn } from '../support/operator/operate.ts';

const REASON = 'seen on the chain, ticket 4711';

describe('operator deposit', () => {
  let commands: TestCommands;
  let orm: Orm;
  let operate: Operate;
  let partnerId: string;
  before(async () => {
    commands = await openCommands();
    orm = commands.context.orm;
    operate = operateIn({ DATABASE_URL: commands.operatorUrl });
  });
  beforeEach(async () => {
    partnerId = await commands.createFundedPartner(1_000);
  });
  after(() => commands.close());

  async function seed(count = 1): Promise<string[]> {
    return seedDeposits(commands.owner, { partnerId, count });
  }
  const resolve = (id: string, ...flags: string[]) =>
    operate('deposit', 'resolve', id, '--reason', REASON, ...flags);

  it('list prints what partners see, with the partner and what was credited', async () => {
    const [id = ''] = await seed();
    await pay(orm, id);
    const [deposit] = (await operate('deposit', 'list')).json;
    const { object, status, amount, received_amount, credited_amount, partner_id } = deposit;
    assert.deepEqual(
      [object, status, amount, received_amount, credited_amount, partner_id],
      ['deposit', 'confirmed', 2_500, 2_500, 2_500, partnerId],
    );
  });

  it('show prints every payment, why it is in review, and what crediting would add', async () => {
    const [id = ''] = await seed();
    const first = await pay(orm, id, { usdt: '10.001' });
    const second = await pay(orm, id, { blockTime: new Date('2999-01-01') });
    const { code, json, err } = await operate('deposit', 'show', id);
    assert.equal(code, 0);
    assert.match(err, /TEMPORAL_ADDRESS is not set/);
    type Payment = Record<'tx_hash' | 'amount_usdt' | 'status' | 'reason', string>;
    assert.deepEqual(
      json.payments.map((one: Payment) => [one.tx_hash, one.amount_usdt, one.status, one.reason]),
      [
        [first, '10.001', 'in_review', 'not the exact amount'],
        [second, '25.00', 'in_review', 'in a block after the deposit expired'],
      ],
    );
    const { status, partner_name, tron_network, creditable_amount, workflow_id, workflow_status } = json;
    assert.deepEqual(
      [status, partner_name, tron_network, creditable_amount, workflow_id, workflow_status],
      ['needs_review', 'Partner', 'private', 3_500, `deposit/${id}`, null],
    );
    assert.deepEqual(json.resolutions, []);
  });

  describe('resolve', () => {
    /** What is written is in resolve-deposit.test.ts. */
    it('credits what arrived with --credit, says how much, and who has done it', async () => {
      const [id = ''] = await seed();
      await pay(orm, id, { usdt: '12.345' });
      const { version } = await readDepositState(orm, id);
      const { code, json } = await resolve(id, '--credit', '--if-version', String(version));
      assert.equal(code, 0);
      assert.deepEqual(
        [json.status, json.credited_amount, json.creditable_amount],
        ['confirmed', 1_234, null],
      );
      const [{ at, ...resolution }] = json.resolutions;
      assert.deepEqual(resolution, {
        ...{ outcome: 'credited', credited_amount: 1_234, reason: REASON, actor: ACTOR, version },
      });
      assert.ok(Date.parse(at));
      const { json: balance } = await operate('ledger', 'balance', partnerId, '--mode', 'live');
      assert.equal(balance.total, 2_234);
    });

    it('is refused if nothing is in review, the deposit has changed, or less than a cent would be credited', async () => {
      const [id = ''] = await seed();
      const refused = async (words: RegExp, ...flags: string[]) => {
        const audited = await lastAudit(operate);
        const before = await readDepositState(orm, id);
        const { code, out, err } = await resolve(id, ...flags);
        assert.deepEqual({ code, out }, { code: 1, out: '' });
        assert.match(err, words);
        assert.match(err, /^Nothing was changed/);
        assert.deepEqual([await lastAudit(operate), await readDepositState(orm, id)], [audited, before]);
      };
      await refused(/has no payment in review, it is awaiting_payment/, '--credit');
      await pay(orm, id, { usdt: '0.001' });
      await refused(
        /Less than a cent of what arrived for dep_\w+ is not credited yet\. Use --returned: /,
        '--credit',
      );
      await refused(/has changed and is now at version 2/, '--credit', '--if-version', '1');
      await resolve(id, '--returned');
      await refused(/it is returned/, '--credit');
      await refused(/it is returned/, '--returned');
    });
  });

  describe('in attention list', () => {
    const attention = async () =>
      (await operate('attention', 'list')).json.filter(
        (item: { partner_id: string }) => item.partner_id === partnerId,
      );

    it('has deposits in review, with the command that resolves each', async () => {
      const [id = ''] = await seed();
      await pay(orm, id, { usdt: '1.5' });
      await pay(orm, id, { blockTime: new Date('2999-01-01') });
      const { json: shown } = await operate('deposit', 'show', id);
      assert.deepEqual(await attention(), [
        {
          kind: 'deposit',
          id,
          since: shown.review_since,
          reason:
            '25.00 USDT expected; 26.50 USDT in 2 payments to review: in a block after the deposit expired; ' +
            'not the exact amount',
          mode: 'live',
          partner_id: partnerId,
          partner_name: shown.partner_name,
          command: `npm run operator -- deposit resolve ${id} --credit --if-version 3 --reason "…"`,
          or_command: `npm run operator -- deposit resolve ${id} --returned --if-version 3 --reason "…"`,
          workflow_id: `deposit/${id}`,
        },
      ]);
      await resolve(id, '--credit', '--if-version', '3');
      assert.deepEqual(await attention(), []);
    });

    it('has deposits that received any other amount, even dust', async () => {
      const amountCents = Number.MAX_SAFE_INTEGER;
      const [id = ''] = await seedDeposits(commands.owner, { partnerId, amountCents });
      await pay(orm, id, { usdt: '0.000001' });
      const [item] = await attention();
      const asked = '90071992547409.91 USDT expected';
      assert.equal(item.reason, `${asked}; 0.000001 USDT in one payment to review: not the exact amount`);
      assert.equal((await operate('deposit', 'show', id)).json.creditable_amount, 0);
    });

    it('has accounts whose payments no worker processes', async () => {
      const [id = ''] = await seed();
      await recordPayment(orm, id);
      assert.deepEqual(await attention(), []);
      await commands.owner.query("UPDATE deposit_payment SET found_at = now() - interval '11 minutes'");
      const [item] = await attention();
      assert.deepEqual([item.kind, item.id], ['deposit_payment', partnerId]);
      assert.match(item.reason, /^1 payments were found but are not credited/);
    });

    it('has accounts whose workflows could not be informed', async () => {
      const [id = ''] = await seed();
      assert.deepEqual(await attention(), []);
      await commands.owner.query("UPDATE deposit SET changed_at = now() - interval '11 minutes'");
      const [item] = await attention();
      assert.deepEqual([item.kind, item.id], ['deposit_workflow', partnerId]);
      assert.equal(item.command, `temporal workflow describe --workflow-id deposit/${id}`);
      await commands.owner.query('UPDATE deposit SET told_version = version');
      assert.deepEqual(await attention(), []);
    });
  });
});
