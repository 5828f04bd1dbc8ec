import assert from 'node:assert/strict';
import pg from 'pg';
import { type Operate, operateIn, operatorEnvironment } from '../../support/operator/operate.ts';
import { ownerUrlOf } from '../../support/postgres.ts';

describe('operator ledger', () => {
  let env: NodeJS.ProcessEnv;
  let operate: Operate;
  let partner: string;

  before(async () => {
    env = await operatorEnvironment();
    operate = operateIn(env);
    partner = (await operate('partner', 'create', '--name', 'Booked')).json.id;
  });

  it('prints a balance of zeros before any money has moved', async () => {
    const { code, json } = await operate('ledger', 'balance', partner, '--mode', 'test');
    assert.deepEqual([code, json], [0, { available: 0, held: 0, total: 0 }]);
  });

  it('needs a mode and a known partner for a balance', async () => {
    assert.equal((await operate('ledger', 'balance', partner)).code, 2);
    const { code, err } = await operate(
      'ledger',
      'balance',
      'prt_01k0000000000000000000000a',
      '--mode',
      'test',
    );
    assert.equal(code, 1);
    assert.match(err, /operator partner list/);
  });

  it('passes the check, and then names what is wrong, with exit code 1', async () => {
    await operate('partner', 'adjust', partner, '--mode', 'test', '--amount', '5', '--reason', 'r');
    const sound = await operate('ledger', 'check');
    assert.deepEqual([sound.code, sound.json], [0, []]);
    await asOwner(`UPDATE ledger.account SET posted = posted + 1 WHERE id = 'prepaid/test/${partner}'`);
    const broken = await operate('ledger', 'check');
    assert.equal(broken.code, 1);
    assert.deepEqual(
      broken.json.map((violation: { invariant: number }) => violation.invariant),
      [2],
    );
    assert.equal(broken.json[0].subject, `prepaid/test/${partner}`);
    await asOwner(`UPDATE ledger.account SET posted = posted - 1 WHERE id = 'prepaid/test/${partner}'`);
    assert.equal((await operate('ledger', 'check')).code, 0);
  });

  async function asOwner(statement: string): Promise<void> {
    const client = new pg.Client(ownerUrlOf(env.DATABASE_URL ?? ''));
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  }
});
