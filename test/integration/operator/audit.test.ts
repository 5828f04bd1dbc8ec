import assert from 'node:assert/strict';
import { ACTOR, type Operate, operateIn, operatorEnvironment } from '../../support/operator/operate.ts';

describe('operator audit list', () => {
  let operate: Operate;

  before(async () => {
    operate = operateIn(await operatorEnvironment());
    await operate('partner', 'create', '--name', 'First');
    await operate('partner', 'create', '--name', 'Second');
  });

  const names = async (...since: string[]) => {
    const { code, json } = await operate('audit', 'list', ...since);
    assert.equal(code, 0);
    return json.map((entry: { detail: { name: string } }) => entry.detail.name);
  };

  it('says who changed what and when, newest first', async () => {
    const { json } = await operate('audit', 'list');
    const fields =
      'id object at actor action subject partner_id partner_name external_ref last4 detail ' +
      'operator os_user host database_login client_address';
    assert.deepEqual(Object.keys(json[0]), fields.split(' '));
    assert.match(json[0].id, /^aud_/);
    assert.ok(json[0].at > json[1].at);
    assert.deepEqual(await names(), ['Second', 'First']);
  });

  it('accepts --since as a timestamp with its zone, a date or an age', async () => {
    const { at } = (await operate('audit', 'list')).json[0];
    assert.deepEqual(await names('--since', at), ['Second']);
    assert.deepEqual(await names('--since', at.replace('Z', '+00:00')), ['Second']);
    assert.deepEqual(await names('--since', '2026-01-01'), ['Second', 'First']);
    assert.deepEqual(await names('--since', '24h'), ['Second', 'First']);
    assert.deepEqual(await names('--since', '2999-01-01T00:00:00Z'), []);
    assert.deepEqual(await names('--since', '9999-12-31T23:59:59-12:00'), []);
  });

  for (const since of ['yesterday', '2026-11-20T08:00:00', '2026-13-01', '24', '-5m', '']) {
    it(`rejects --since "${since}" as wrong usage`, async () => {
      const { code, out } = await operate('audit', 'list', '--since', since);
      assert.deepEqual({ code, out }, { code: 2, out: '' });
    });
  }

  it('filters by --subject and --actor', async () => {
    const [{ subject }] = (await operate('audit', 'list')).json;
    assert.deepEqual(await names('--subject', subject), ['Second']);
    assert.deepEqual(await names('--subject', 'prt_nobody'), []);
    assert.deepEqual(await names('--actor', ACTOR), ['Second', 'First']);
    assert.deepEqual(await names('--actor', ACTOR, '--subject', subject, '--since', '1h'), ['Second']);
    assert.deepEqual(await names('--actor', 'somebody@else'), []);
  });

  it('has no entry for a failed change', async () => {
    const before = (await operate('audit', 'list')).json;
    await operate('product', 'retire', 'NOPE');
    await operate('partner', 'update', 'prt_01k0000000000000000000000a', '--name', 'x');
    assert.deepEqual((await operate('audit', 'list')).json, before);
  });
});
