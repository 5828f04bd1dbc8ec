import assert from 'node:assert/strict';
import { freePort } from '../../dev/free-port.ts';
import { TRANSFER_DIRECTIONS } from '../../domain/transfer.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { transferWorkflowId } from '../../workflows/messages.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { NEVER_FINISHES, OPERATION_KINDS, stuck } from '../support/operation-kinds.ts';
import { environmentOf, type Operate, operateIn } from '../support/operator/operate.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';
import { cardholder, transfer } from '../support/transfers.ts';
import { until } from '../support/until.ts';

const CARDHOLDER = {
  card_name: 'Travel',
  cardholder_first_name: 'Ada',
  cardholder_last_name: 'Lovelace',
  email: 'ada@example.com',
};
const live = { mode: 'live' } as const;

describe('operator show', () => {
  let stack: TestStack;
  let operate: Operate;
  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
  });

  const show = async (noun: string, id: string) => {
    const { code, json, err } = await operate(noun, 'show', id);
    assert.equal(code, 0, err);
    return json;
  };

  it('has a card, its money, its request and its workflow, but not the cardholder', async () => {
    const partner = await fundedPartner(stack);
    const metadata = { order: 'of Ada', 'a note': CARDHOLDER.email };
    const created = await createCard(partner, { amount: 10_000, ...CARDHOLDER, metadata }, live);
    const { id, metadata: _, ...asItsPartnerSeesIt } = created.json;
    for (const name of Object.keys(CARDHOLDER)) delete asItsPartnerSeesIt[name];
    await stack.client.workflow.getHandle(`issue-card/${id}`).result();
    const { code, json, out } = await operate('card', 'show', id);
    assert.equal(code, 0);
    assert.deepEqual(json, {
      ...asItsPartnerSeesIt,
      id,
      partner_id: partner.id,
      partner_name: 'Test Partner',
      funding: 10_000,
      fees: [
        { type: 'card_activation', amount: 100 },
        { type: 'card_funding', amount: 200 },
      ],
      metadata_keys: ['a note', 'order'],
      spending_limits: [],
      cardholder_erased_at: null,
      network_card_id: json.network_card_id,
      overdue_since: null,
      status_change: null,
      request: json.request,
      pending_authorizations: [],
      topups: [],
      withdrawals: [],
      workflow_id: `issue-card/${id}`,
      waiting: null,
      workflow_status: 'completed',
    });
    assert.deepEqual(
      [json.request.request_id, json.request.client_address],
      [created.headers.get('request-id'), '127.0.0.1'],
    );
    for (const personal of Object.values(CARDHOLDER)) assert.ok(!out.includes(personal));
  });

  for (const noun of TRANSFER_DIRECTIONS) {
    it(`has a ${noun} as its partner sees it, with the account and its workflow, which test mode has not`, async () => {
      const holder = await cardholder(stack, 'live', 100_000);
      const { json: made } = await transfer(noun, holder, 700);
      const workflowId = transferWorkflowId(noun, made.id);
      await stack.client.workflow.getHandle(workflowId).result();
      assert.deepEqual(await show(noun, made.id), {
        ...made,
        ...{ partner_id: holder.partner.id, partner_name: 'Test Partner', overdue_since: null },
        ...{ workflow_id: workflowId, waiting: null, workflow_status: 'completed' },
      });
      const { json: ofTest } = await transfer(noun, await cardholder(stack, 'test', 100_000), 700);
      for (const shown of [await show(noun, ofTest.id), await show('card', ofTest.card_id)])
        assert.deepEqual([shown.workflow_id, shown.workflow_status], [null, null]);
    });
  }

  for (const kind of OPERATION_KINDS) {
    it(`says what a pending ${kind.object} waits for, by the deadline that is configured now`, async () => {
      const { id } = await stuck(stack, kind);
      const shown = await until('the answer is noted, and when the next is asked for', async () => {
        const one = await show(kind.object, id);
        return one.waiting.next_poll_at !== null && one;
      });
      const { status, created, workflow_status, waiting } = shown;
      assert.deepEqual([status, workflow_status], [kind.statuses.pending, 'running']);
      assert.equal(Date.parse(waiting.deadline) - Date.parse(created), 24 * 3_600_000);
      assert.ok(waiting.asked >= 1);
      assert.equal(waiting.last_answer, 'pending');
      assert.ok(waiting.last_asked_at < waiting.next_poll_at);
      const later = operateIn({ ...environmentOf(stack.config), [kind.deadline]: '1ms' });
      const changed = (await later(kind.object, 'show', id)).json.waiting.deadline;
      assert.equal(Date.parse(changed) - Date.parse(created), 1);
    });
  }

  it('has a transaction as its partner sees it, with the account and the id at the network', async () => {
    const { partner, cardId } = await cardholder(stack, 'test', 100_000);
    const body = { type: 'purchase', amount: 50, merchant_name: 'Café' };
    const { json: made } = await partner.call('POST', `/test/cards/${cardId}/simulate-transaction`, { body });
    const { network_transaction_id, ...shown } = await show('transaction', made.id);
    assert.deepEqual(shown, { ...made, partner_id: partner.id, partner_name: 'Test Partner' });
    assert.equal(typeof network_transaction_id, 'string');
    const unknown = await operate('transaction', 'show', newId('txn'));
    assert.equal(unknown.code, 1);
    assert.match(unknown.err, /transaction list/);
  });

  it('has an operation as its partner sees it, with the account and the request', async () => {
    const partner = await fundedPartner(stack);
    const card = await createCard(partner, { amount: NEVER_FINISHES }, live);
    const id = card.headers.get('operation-id') ?? '';
    const { partner_id, partner_name, request_id, resource, type, status } = await show('operation', id);
    assert.deepEqual(
      [partner_id, partner_name, request_id],
      [partner.id, 'Test Partner', card.headers.get('request-id')],
    );
    const { json: seen } = await partner.call('GET', `/operations/${id}`, live);
    assert.deepEqual([resource, type, status], [seen.resource, seen.type, seen.status]);
    const unknown = await operate('operation', 'show', newId('op'));
    assert.equal(unknown.code, 1);
    assert.match(unknown.err, /operation list/);
  });

  it("has all but the workflow's status without Temporal, and what a pending one waits for", async () => {
    const partner = await fundedPartner(stack);
    const { json: card } = await createCard(partner, { amount: NEVER_FINISHES }, live);
    const waits = async () => (await show('card', card.id)).waiting;
    await until('the answer is noted', async () => (await waits()).last_answer === 'pending');
    const address = `127.0.0.1:${await freePort()}`;
    const cut = operateIn({ ...environmentOf(stack.config), TEMPORAL_ADDRESS: address });
    const { code, json, err } = await cut('card', 'show', card.id);
    assert.deepEqual([code, json.id, json.workflow_status], [0, card.id, null]);
    assert.equal(json.waiting.last_answer, 'pending');
    assert.ok(err.includes(`Temporal does not respond at ${address}`));
  });
});
