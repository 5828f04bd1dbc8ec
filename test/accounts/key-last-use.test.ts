import assert from 'node:assert/strict';
import { pino } from 'pino';
import { recordKeyUses } from '../../accounts/usage.ts';
import { startApi } from '../../api/server.ts';
import { freePort } from '../../dev/free-port.ts';
import { environmentOf, type Operate, operateIn } from '../support/operator/operate.ts';
import { connectTo, ownerUrlOf } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { partnerAt, type TestStack } from '../support/stack.ts';

interface Key {
  id: string;
  partner_id: string;
  mode: string;
  last_used_at: string | null;
}

describe('operator key list', () => {
  let stack: TestStack;
  let operate: Operate;
  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
  });

  const list = async (...args: string[]): Promise<Key[]> => {
    const { code, json, err } = await operate('key', 'list', ...args);
    assert.equal(code, 0, err);
    return json;
  };

  it('says when a key was last used, which a process has recorded at the latest when it ends', async () => {
    const partner = await stack.createPartner();
    const api = await startApi({ ...stack.config, port: await freePort() }, pino({ level: 'silent' }));
    const since = Date.now();
    try {
      assert.equal((await partnerAt(partner, api.url).call('GET', '/ping')).status, 200);
    } finally {
      await api.stop();
    }
    const keys = await list(partner.id);
    const lastUse = (mode: string) => keys.find((key) => key.mode === mode)?.last_used_at;
    assert.equal(lastUse('live'), null);
    const usedMs = Date.parse(lastUse('test') ?? '');
    assert.ok(usedMs >= since && usedMs <= Date.now(), lastUse('test') ?? 'never');
  });

  it('still learns of a use that could not be recorded at first, because the row of the key was locked', async () => {
    const partner = await stack.createPartner();
    const [key] = await list(partner.id);
    const usedMs = Date.now();
    const uses = new Map([[key?.id ?? '', usedMs]]);
    {
      await using holder = await connectTo(ownerUrlOf(stack.config.databaseUrl));
      await holder.query('BEGIN');
      await holder.query('SELECT FROM api_key WHERE id = $1 FOR UPDATE', [key?.id]);
      await recordKeyUses(stack.orm, uses);
    }
    await recordKeyUses(stack.orm, uses);
    assert.equal(Date.parse((await list(partner.id))[0]?.last_used_at ?? ''), usedMs);
    assert.equal(uses.size, 0);
  });
});
