import assert from 'node:assert/strict';
import { newId } from '../../../crypto/new-id.ts';
import { createCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { environmentOf, type Operate, operateIn } from '../../support/operator/operate.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';

describe('operator operation', function () {
  this.timeout(60_000);
  let stack: TestStack;
  let operate: Operate;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
    partner = await fundedPartner(stack);
  });

  it('show has what the partner sees, with the account and the request', async () => {
    const card = await createCard(partner, { amount: 1_047 }, { mode: 'live' });
    const id = card.headers.get('operation-id') ?? '';
    const { code, json, err } = await operate('operation', 'show', id);
    assert.equal(code, 0, err);
    const { partner_id, partner_name, request_id, ...operation } = json;
    assert.deepEqual(
      [partner_id, partner_name, request_id],
      [partner.id, 'Test Partner', card.headers.get('request-id')],
    );
    const { resource, type, status } = (await partner.call('GET', `/operations/${id}`, { mode: 'live' }))
      .json;
    assert.deepEqual([operation.resource, operation.type, operation.status], [resource, type, status]);
  });

  it('show refuses an id that there is not', async () => {
    const { code, err } = await operate('operation', 'show', newId('op'));
    assert.equal(code, 1);
    assert.match(err, /operation list/);
  });

  it("list has an account's, newest first, by mode and status, in pages", async () => {
    const one = await fundedPartner(stack);
    const ids: string[] = [];
    for (const mode of ['test', 'live', 'test'] as const) {
      const card = await createCard(one, { amount: 1_000 }, { mode });
      ids.unshift(card.headers.get('operation-id') ?? '');
    }
    const list = async (...flags: string[]) => {
      const { code, json, err } = await operate('operation', 'list', '--partner', one.id, ...flags);
      assert.equal(code, 0, err);
      return json.map(({ id }: { id: string }) => id);
    };
    // The credit that funded the account has a key of its own.
    assert.deepEqual((await list()).slice(0, 3), ids);
    assert.deepEqual(await list('--mode', 'live', '--status', 'completed'), [ids[1]]);
    assert.deepEqual(await list('--status', 'awaiting_review'), []);
    assert.deepEqual((await list('--before', ids[1] ?? ''))[0], ids[2]);
    assert.equal((await operate('operation', 'list', '--partner', 'prt_x')).code, 1);
  });
});
