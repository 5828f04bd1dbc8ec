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
  const link = (...args: string[]) => operate('workbench', 'link', partner.id, '--mode', 'live', ...args);
  const operate = (...args: string[]) =>
    operateIn({ ...environmentOf(stack.config), PUBLIC_URL: stack.config.publicUrl })(...args);
  const tokenIn = ({ url }: { url: string }) => new URL(url).hash.slice(1);

  it("opens the partner's workbench, for a key that nobody has and the partner can revoke", async () => {
    const { code, json, err } = await link();
    assert.equal(code, 0, err);
    const browser = openBrowser(stack);
    const opened = await browser.exchange(tokenIn(json));
    assert.deepEqual(
      [opened.json.id, opened.json.account.id, opened.json.mode],
      [json.id, partner.id, 'live'],
    );
    assert.equal((await browser.ask('GET', '/ping', json.id)).json.mode, 'live');
    const again = await link('--scopes', 'cards:read');
    assert.deepEqual([again.json.api_key_id, again.json.scopes], [json.api_key_id, ['cards:read']]);
    assert.deepEqual(((await lastAudit(operate)) as { action: string }).action, 'workbench.create');
    assert.ok(!(await operate('audit', 'list')).out.includes(tokenIn(again.json)));
    await operate('key', 'revoke', json.api_key_id);
    assert.notEqual((await link()).json.api_key_id, json.api_key_id);
    expectError(await openBrowser(stack).exchange(tokenIn(again.json)), 'invalid_api_key');
  });

  it('is refused without an origin, for an unknown partner, and for a session that makes others', async () => {
    const asked = ['workbench', 'link', partner.id, '--mode', 'test'];
    const nowhere = await operateIn(environmentOf(stack.config))(...asked);
    assert.match(nowhere.err, /PUBLIC_URL: is required for this command/);
    const unknown = await operate('workbench', 'link', 'prt_x', '--mode', 'test');
    assert.match(unknown.err, /not the id of a partner/);
    assert.match((await link('--scopes', 'workbench:write')).err, /must not be workbench:write/);
  });
});
