import assert from 'node:assert/strict';
import { expectError } from '../support/api/answers.ts';
import { openBrowser } from '../support/api/workbench-browser.ts';
import { environmentOf, lastAudit, operateIn } from '../support/operator/operate.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('operator workbench link', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack('api');
    partner = await stack.createPartner();
  });
  const operate = (...args: string[]) =>
    operateIn({ ...environmentOf(stack.config), PUBLIC_URL: stack.config.publicUrl })(...args);

  it("opens the partner's workbench, for a key that nobody has and the partner can revoke", async () => {
    const { code, json, err } = await operate('workbench', 'link', partner.id, '--mode', 'live');
    assert.equal(code, 0, err);
    const browser = openBrowser(stack);
    const opened = await browser.exchange(new URL(json.url).hash.slice(1));
    assert.deepEqual(
      [opened.json.id, opened.json.account.id, opened.json.mode],
      [json.id, partner.id, 'live'],
    );
    assert.equal((await browser.ask('GET', '/ping', json.id)).json.mode, 'live');
    const again = await operate('workbench', 'link', partner.id, '--mode', 'live', '--scopes', 'cards:read');
    assert.deepEqual([again.json.api_key_id, again.json.scopes], [json.api_key_id, ['cards:read']]);
    assert.deepEqual(((await lastAudit(operate)) as { action: string }).action, 'workbench.create');
    assert.ok(!(await operate('audit', 'list')).out.includes(new URL(again.json.url).hash.slice(1)));
    await operate('key', 'revoke', json.api_key_id);
    const third = await operate('workbench', 'link', partner.id, '--mode', 'live');
    assert.notEqual(third.json.api_key_id, json.api_key_id);
    expectError(await openBrowser(stack).exchange(new URL(again.json.url).hash.slice(1)), 'invalid_api_key');
  });

  it('is refused without an origin, for an unknown partner, and for a session that makes others', async () => {
    const nowhere = await operateIn(environmentOf(stack.config))(
      'workbench',
      'link',
      partner.id,
      '--mode',
      'test',
    );
    assert.match(nowhere.err, /PUBLIC_URL: is required for this command/);
    assert.match(
      (await operate('workbench', 'link', 'prt_x', '--mode', 'test')).err,
      /not the id of a partner/,
    );
    const more = await operate(
      'workbench',
      'link',
      partner.id,
      '--mode',
      'test',
      '--scopes',
      'workbench:write',
    );
    assert.match(more.err, /must not be workbench:write/);
  });
});
