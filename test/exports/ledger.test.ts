import assert from 'node:assert/strict';
import { column } from '../support/column.ts';
import { type Operate, operateIn, operatorEnvironment } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';

describe('operator ledger', () => {
  let env: NodeJS.ProcessEnv;
  let operate: Operate;
  let partner: string;

  before(async () => {
    env = await operatorEnvironment();
    operate = operateIn(env);
    partner = (await operate('partner', 'create', '--name', 'Booked')).json.id;
  });

  it('prints the statement of a month that has begun', async () => {
    const { id } = (await operate('partner', 'create', '--name', 'Stated')).json;
    await operate('partner', 'adjust', id, '--mode', 'live', '--amount', '700', '--reason', 'r');
    const month = new Date().toISOString().slice(0, 7);
    const { code, json } = await operate('ledger', 'statement', id, month, '--mode', 'live');
    assert.equal(code, 0);
    const { cards, ...balance } = json;
    assert.deepEqual(balance, {
      object: 'statement',
      month,
      opening_balance: 0,
      closing_balance: 700,
      lines: [{ type: 'adjustment', count: 1, amount: 700 }],
      mode: 'live',
    });
    assert.equal(cards.closing_balance, 0);
    const wrong = await operate('ledger', 'statement', id, '2026-13', '--mode', 'live');
    assert.equal(wrong.code, 1);
    assert.match(wrong.err, /write it as 2026-10/);
  });

  it('passes the check, and then names what is wrong, with exit code 1', async () => {
    await operate('partner', 'adjust', partner, '--mode', 'test', '--amount', '5', '--reason', 'r');
    const sound = await operate('ledger', 'check');
    assert.deepEqual([sound.code, sound.json], [0, []]);
    await asOwner(
      env.DATABASE_URL ?? '',
      `UPDATE ledger.account SET posted = posted + 1 WHERE id = 'prepaid/test/${partner}'`,
    );
    const broken = await operate('ledger', 'check');
    assert.equal(broken.code, 1);
    assert.deepEqual(column(broken.json, 'invariant'), [2]);
    assert.equal(broken.json[0].subject, `prepaid/test/${partner}`);
    await asOwner(
      env.DATABASE_URL ?? '',
      `UPDATE ledger.account SET posted = posted - 1 WHERE id = 'prepaid/test/${partner}'`,
    );
    assert.equal((await operate('ledger', 'check')).code, 0);
  });
});
