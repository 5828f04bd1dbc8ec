import assert from 'node:assert/strict';
import { expectError } from '../support/api/answers.ts';
import { networkIdOf, networkTransaction, sendAsNetwork } from '../support/api/network-events.ts';
import { createCard, readCardRow } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { assertAudited } from '../support/operator/audited.ts';
import { environmentOf, type Operate, operateIn } from '../support/operator/operate.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

const REASON = ['--reason', 'key published, ticket 4711'];
const live = { mode: 'live' } as const;

describe('operator partner suspend and resume', () => {
  let stack: TestStack;
  let operate: Operate;
  let partner: TestPartner;
  let receiver: Receiver;

  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
    receiver = await startReceiver();
  });
  after(() => receiver.stop());
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });

  it('refuses every key of the account with 403, also one that was in use, and lets them in again', async () => {
    const asks = [{}, live].map((options) => () => partner.call('GET', '/ping', options));
    /** A process may know a key for two seconds. */
    const untilAnswers = (status: number) =>
      until(`both keys get ${status}`, async () => {
        const answers = await Promise.all(asks.map((ask) => ask()));
        return answers.every((one) => one.status === status) && answers;
      });
    await untilAnswers(200);
    const { code, json } = await operate('partner', 'suspend', partner.id, ...REASON);
    assert.equal(code, 0);
    assert.equal(json.suspension_reason, REASON[1]);
    for (const refused of await untilAnswers(403)) expectError(refused, 'account_suspended');
    await assertAudited(operate, 'partner.suspend', partner.id, { reason: REASON[1] });
    const shown = await operate('partner', 'show', partner.id);
    assert.equal(shown.json.suspended_at, json.suspended_at);
    const other = await stack.createPartner();
    assert.equal((await other.call('GET', '/ping')).status, 200);

    const resumed = await operate('partner', 'resume', partner.id, '--reason', 'keys replaced');
    assert.deepEqual([resumed.json.suspended_at, resumed.json.suspension_reason], [null, null]);
    await untilAnswers(200);
    const detail = { reason: 'keys replaced', suspendedAt: json.suspended_at };
    await assertAudited(operate, 'partner.resume', partner.id, detail);
  });

  it('lets what had begun go on: the issuance, the network’s transactions, and webhooks', async () => {
    await operate('webhook-endpoint', 'set', partner.id, '--url', receiver.url);
    const active = await createCard(partner, { amount: 10_000 }, live);
    assert.equal(active.status, 201, active.text);
    const pending = await createCard(partner, { amount: 10_041 }, live);
    assert.equal(pending.status, 202, pending.text);
    await operate('partner', 'suspend', partner.id, ...REASON);

    await until('the card is active', async () => {
      return (await readCardRow(stack, pending.json.id))?.status === 'active';
    });
    const purchase = networkTransaction(await networkIdOf(stack, active.json.id));
    const settled = await sendAsNetwork(stack, '/network/transactions', JSON.stringify(purchase));
    assert.equal(settled.status, 200, settled.text);
    for (const [type, cardId] of [
      ['card.issued', pending.json.id],
      ['card.transaction.created', active.json.id],
    ]) {
      await until(`${type} is delivered`, async () =>
        receiver.received.some(({ body }) => body.includes(`"${type}"`) && body.includes(`"${cardId}"`)),
      );
    }
  });

  it('changes and records nothing if it is suspended already, or not at all', async () => {
    const first = await operate('partner', 'suspend', partner.id, ...REASON);
    const again = await operate('partner', 'suspend', partner.id, '--reason', 'another');
    assert.deepEqual([again.code, again.json], [0, first.json]);
    await operate('partner', 'resume', partner.id, ...REASON);
    const twice = await operate('partner', 'resume', partner.id, ...REASON);
    assert.deepEqual([twice.code, twice.json.suspended_at], [0, null]);
    const { json } = await operate('audit', 'list', '--subject', partner.id);
    const actions = json.map(({ action }: { action: string }) => action);
    const changes = actions.filter((action: string) => /suspend|resume/.test(action));
    assert.deepEqual(changes, ['partner.resume', 'partner.suspend']);
  });
});
