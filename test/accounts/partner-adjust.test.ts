import assert from 'node:assert/strict';
import { column } from '../support/column.ts';
import { assertAudited } from '../support/operator/audited.ts';
import { lastAudit, type Operate, operateIn, operatorEnvironment } from '../support/operator/operate.ts';

describe('operator partner adjust', () => {
  let operate: Operate;
  let partner: string;

  before(async () => {
    operate = operateIn(await operatorEnvironment());
  });

  beforeEach(async () => {
    partner = (await operate('partner', 'create', '--name', 'Adjusted')).json.id;
  });

  const adjustIn = (mode: string, amount: string, ...rest: string[]) =>
    operate(...`partner adjust ${partner} --mode ${mode} --amount ${amount}`.split(' '), ...rest);
  const adjust = (amount: string, ...rest: string[]) =>
    adjustIn('live', amount, '--reason', 'wire 7', ...rest);

  const balance = async (mode = 'live') => (await operate('ledger', 'balance', partner, '--mode', mode)).json;

  it('credits and debits one mode, and records it', async () => {
    const credit = await adjust('1000');
    assert.equal(credit.code, 0);
    assert.match(credit.json.id, /^adj_/);
    assert.deepEqual(credit.json, {
      id: credit.json.id,
      object: 'balance_adjustment',
      partner_id: partner,
      mode: 'live',
      amount: 1000,
      reason: 'wire 7',
      key: null,
      balance: { available: 1000, held: 0, total: 1000 },
      created: credit.json.created,
    });
    const debit = await adjust('-400');
    assert.deepEqual(debit.json.balance, { available: 600, held: 0, total: 600 });
    const detail = { mode: 'live', amountCents: -400, reason: 'wire 7', key: null };
    await assertAudited(operate, 'partner.adjust', partner, { adjustmentId: debit.json.id, ...detail });
    assert.deepEqual(await balance(), { available: 600, held: 0, total: 600 });
    assert.deepEqual(await balance('test'), { available: 0, held: 0, total: 0 });
    assert.deepEqual((await operate('ledger', 'check')).json, []);
  });

  it('accepts --amount=-400 and +400 as well', async () => {
    await adjust('+400');
    const args = ['partner', 'adjust', partner, '--mode', 'live', '--amount=-400', '--reason', 'r'];
    assert.equal((await operate(...args)).json.amount, -400);
    assert.deepEqual(await balance(), { available: 0, held: 0, total: 0 });
  });

  it('refuses a debit above the available balance, and changes nothing', async () => {
    await adjust('500');
    const audited = await lastAudit(operate);
    const { code, out, err } = await adjust('-501', '--key', 'too-much');
    assert.deepEqual({ code, out }, { code: 1, out: '' });
    assert.match(err, /does not cover/);
    assert.match(err, new RegExp(`operator ledger balance ${partner} --mode live`));
    assert.deepEqual(await balance(), { available: 500, held: 0, total: 500 });
    assert.deepEqual(await lastAudit(operate), audited);
    // Nothing was remembered of it, so the key is free.
    assert.equal((await adjust('-500', '--key', 'too-much')).code, 0);
  });

  it('takes effect once if it is repeated with its key, and prints the same result', async () => {
    const first = await adjust('700', '--key', 'wire-7');
    await adjust('50');
    const again = await adjust('700', '--key', 'wire-7');
    assert.deepEqual(again.json, first.json);
    assert.equal((await balance()).total, 750);
    const { json: entries } = await operate('audit', 'list', '--subject', partner);
    assert.deepEqual(column(entries, 'action'), ['partner.adjust', 'partner.adjust', 'partner.create']);
  });

  it('takes effect once if it runs ten times at once with one key', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => adjust('30', '--key', 'race')));
    assert.deepEqual(new Set(answers.map((answer) => answer.code)), new Set([0]));
    assert.equal(new Set(answers.map((answer) => answer.json.id)).size, 1);
    assert.equal((await balance()).total, 30);
  });

  it('refuses a key that was used for another adjustment, and names that one', async () => {
    const first = await adjust('700', '--key', 'wire-8');
    for (const other of [
      await adjust('701', '--key', 'wire-8'),
      await adjustIn('live', '700', '--reason', 'other', '--key', 'wire-8'),
    ]) {
      assert.equal(other.code, 1);
      assert.match(other.err, /"wire-8"/);
      assert.match(other.err, new RegExp(first.json.id));
    }
    assert.equal((await balance()).total, 700);
  });

  it('keeps the keys of accounts and modes apart', async () => {
    await adjust('700', '--key', 'wire-9');
    assert.equal((await adjustIn('test', '5', '--reason', 'r', '--key', 'wire-9')).code, 0);
    assert.deepEqual([(await balance()).total, (await balance('test')).total], [700, 5]);
  });

  it('refuses a credit that would exceed the largest balance', async () => {
    await adjust('9007199254740991');
    const { code, err } = await adjust('1');
    assert.equal(code, 1);
    assert.match(err, /adjust it by less/);
  });
});
