import assert from 'node:assert/strict';
import { newId } from '../../platform/crypto/new-id.ts';
import { TOP_UP_CARD } from '../../workflows/messages.ts';
import { sendAsNetwork } from '../support/api/network-events.ts';
import { createCard } from '../support/cards.ts';
import { claimOf } from '../support/claims.ts';
import { assertLedgerClean, balanceOf, fundedPartner } from '../support/money.ts';
import {
  age,
  assertMoney,
  completeAtNetwork,
  ISSUANCE,
  NEVER_FINISHES,
  type OperationKind,
  stuck,
  TOP_UP,
  typesAbout,
  WITHDRAWAL,
} from '../support/operation-kinds.ts';
import { ACTOR, environmentOf, lastAudit, type Operate, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';
import { transfer } from '../support/transfers.ts';
import { until } from '../support/until.ts';

describe('the network, if it contradicts a decision made by hand,', () => {
  let stack: TestStack;
  let operate: Operate;
  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
  });
  after(() => assertLedgerClean(stack));

  async function callBack(token: string, of: OperationKind): Promise<void> {
    const type = of === ISSUANCE ? 'card.issuance' : `card.${of.object}`;
    const { status } = await sendAsNetwork(stack, '/network/callbacks', JSON.stringify({ token, type }));
    assert.equal(status, 204);
  }
  const itemOf = async (id: string) =>
    (await operate('attention', 'list')).json.find((item: { id: string }) => item.id === id);
  const untilListed = (id: string, kind: string) =>
    until(`${id} is listed`, async () => {
      const item = await itemOf(id);
      return item?.kind === kind && item;
    });
  const isExpected = async (id: string) =>
    (await asOwner(stack, 'SELECT FROM late_answer WHERE id = $1', [id])).length > 0;
  /** An operation that an operator has decided after its deadline. */
  async function decided(kind: OperationKind, outcome: '--failed' | '--succeeded' | '--issued') {
    const one = await stuck(stack, kind);
    await age(one);
    const { code, err } = await operate(kind.object, 'resolve', one.id, outcome, '--reason', 'r');
    assert.equal(code, 0, err);
    assert.equal(await itemOf(one.id), undefined);
    return one;
  }
  /** It is decided, and then the network says something else. */
  async function contradicted(kind: OperationKind, outcome: Parameters<typeof decided>[1]) {
    const one = await decided(kind, outcome);
    await completeAtNetwork(stack, one.id, outcome === '--failed' ? 'succeeded' : 'failed');
    await callBack(one.id, kind);
    return { ...one, item: await untilListed(one.id, 'network_contradiction') };
  }

  for (const [kind, listed, loaded] of [
    [TOP_UP, 'card_topup', 'loaded the card'],
    [WITHDRAWAL, 'card_withdrawal', 'taken the money off the card'],
  ] as const) {
    const { name, object: command } = kind;

    it(`has ${name} listed that it has carried out although it failed, which is then booked once`, async () => {
      const { id, item, ...one } = await contradicted(kind, '--failed');
      const said = `${name.slice(2)} failed, and the network has ${loaded}: book it now`;
      assert.match(item.reason, new RegExp(said));
      assert.equal(item.command, `npm run operator -- ${command} book ${id} --reason "…"`);
      assert.equal(item.or_command, `npm run operator -- ${command} dismiss ${id} --reason "…"`);
      await assertMoney(one, 'failed');

      const { code, json, err } = await operate(command, 'book', id, '--reason', 'ticket 4711');
      assert.deepEqual([code, json?.status, json?.failure_code], [0, 'succeeded', null], err);
      assert.equal(json.card_balance, kind.cardCents + kind.change(NEVER_FINISHES).cardCents);
      const { cardId, partner } = one;
      assert.deepEqual(await lastAudit(operate), {
        ...{ actor: ACTOR, action: `${command}.book`, subject: id },
        detail: { partnerId: partner.id, mode: 'live', cardId, said: 'yes', reason: 'ticket 4711' },
      });
      assert.deepEqual(await typesAbout(one), [kind.events.failed, kind.events.succeeded]);
      await assertMoney(one, 'succeeded', NEVER_FINISHES);
      const ofCard = ['ledger', 'transactions', partner.id, '--mode', 'live', '--card', cardId];
      const changes: { type: string; source: { id: string } }[] = (await operate(...ofCard)).json;
      assert.equal(changes.filter(({ type, source }) => type === listed && source.id === id).length, 1);
      assert.equal(await itemOf(id), undefined);
      const again = await operate(command, 'book', id, '--reason', 'r');
      assert.equal(again.code, 1);
      assert.match(again.err, /there is nothing to book/);
    });

    it(`has ${name} listed that it has not carried out although an operator decided so`, async () => {
      const { id, item } = await contradicted(kind, '--succeeded');
      assert.match(item.reason, new RegExp(`has not ${loaded}`));
      const refused = await operate(command, 'book', id, '--reason', 'r');
      assert.match(refused.err, /has not carried out .*: there is nothing to book/);
      // It settles that itself.
      await completeAtNetwork(stack, id);
      await callBack(id, kind);
      await until('it is settled', async () => !(await isExpected(id)));
      assert.equal(await itemOf(id), undefined);
    });
  }

  it('has a top-up booked whose row was deleted with its refusal, once the balance covers it', async () => {
    const one = await stuck(stack, TOP_UP);
    const { id, partner } = one;
    await age(one);
    await asOwner(
      stack,
      // The sweep of abandoned claims would answer it again.
      `UPDATE idempotency_claim SET response_status = NULL, response_body = NULL,
         sweep_after = now() + interval '50 minutes' WHERE id = $1`,
      [await claimOf(stack, id)],
    );
    await operate('topup', 'resolve', id, '--failed', '--reason', 'r');
    await until('its row is gone', async () => (await operate('topup', 'show', id)).code === 1);
    const [available = 0] = await balanceOf(partner, 'live');
    const adjust = (cents: number) =>
      operate('partner', 'adjust', partner.id, '--mode', 'live', '--amount', String(cents), '--reason', 'r');
    assert.equal((await adjust(-available)).code, 0);
    await completeAtNetwork(stack, id);
    await callBack(id, TOP_UP);
    await untilListed(id, 'network_contradiction');

    const refused = await operate('topup', 'book', id, '--reason', 'r');
    assert.match(refused.err, /was not booked: the partner's balance does not cover it/);
    assert.match((await itemOf(id)).reason, /does not cover it/);
    assert.equal((await adjust(available)).code, 0);
    const booked = await operate('topup', 'book', id, '--reason', 'r');
    assert.deepEqual([booked.code, booked.json?.status], [0, 'succeeded'], booked.err);
  });

  it('has a top-up of a card that is blocked meanwhile booked with the balance that is left: none', async () => {
    const { id, cardId, partner } = await decided(TOP_UP, '--failed');
    const blocked = await operate('card', 'block', cardId, '--reason', 'r');
    assert.equal(blocked.code, 0, blocked.err);
    const before = await balanceOf(partner, 'live');
    await completeAtNetwork(stack, id);
    await callBack(id, TOP_UP);
    await untilListed(id, 'network_contradiction');
    const booked = await operate('topup', 'book', id, '--reason', 'r');
    assert.deepEqual([booked.code, booked.json?.card_balance, booked.json?.fees], [0, 0, []], booked.err);
    assert.deepEqual(await balanceOf(partner, 'live'), before);
    const [event] = await asOwner<{ body: string }>(
      stack,
      "SELECT body FROM event WHERE card_id = $1 AND type = 'topup.succeeded'",
      [cardId],
    );
    const { topup, card } = JSON.parse(event?.body ?? '').data;
    assert.deepEqual([topup.card_balance, card.status, card.balance], [0, 'blocked', 0]);
    const { json } = await partner.call('GET', `/cards/${cardId}`, { mode: 'live' });
    assert.deepEqual(card, json);
  });

  it('has no withdrawal booked from a card that has no longer got the money, or is blocked', async () => {
    const { id, cardId, partner } = await contradicted(WITHDRAWAL, '--failed');
    const spent = await transfer('withdrawal', { partner, mode: 'live', cardId }, 9_900);
    assert.equal(spent.status, 201, spent.text);
    const refused = await operate('withdrawal', 'book', id, '--reason', 'r');
    assert.match(refused.err, /was not booked: the card's available balance does not cover it any more/);
    assert.match((await itemOf(id)).reason, /does not cover it any more/);
    const blocked = await operate('card', 'block', cardId, '--reason', 'r');
    assert.equal(blocked.code, 0, blocked.err);
    const closed = await operate('withdrawal', 'book', id, '--reason', 'r');
    assert.match(closed.err, /its money is in the prepaid balance already/);
    const { code, err } = await operate('withdrawal', 'dismiss', id, '--reason', 'r');
    assert.equal(code, 0, err);
    assert.equal(await itemOf(id), undefined);
  });

  it('has a failed issuance listed that it has issued after all, until an operator dismisses it', async () => {
    const { id, item } = await contradicted(ISSUANCE, '--failed');
    assert.match(item.reason, /the network has issued the card as \S+: have the network close it/);
    assert.equal(item.command, `npm run operator -- card dismiss ${id} --reason "…"`);
    const { code, err } = await operate('card', 'dismiss', id, '--reason', 'closed, ticket 4711');
    assert.equal(code, 0, err);
    assert.equal(await itemOf(id), undefined);
    await callBack(id, ISSUANCE);
    const rows = await asOwner<{ due: boolean }>(
      stack,
      'SELECT retry_after <= now() AS due FROM late_answer WHERE id = $1',
      [id],
    );
    assert.deepEqual(rows, [{ due: false }]);
    const again = await operate('card', 'dismiss', id, '--reason', 'r');
    assert.match(again.err, /there is nothing to dismiss/);
  });

  it('has an issued card listed that it has not issued, with the command that blocks it', async () => {
    const { id, item } = await contradicted(ISSUANCE, '--issued');
    assert.match(item.reason, /the network says that it is not: block it, which returns its balance/);
    assert.equal(item.command, `npm run operator -- card block ${id} --reason "…"`);
    const dismiss = `npm run operator -- card dismiss ${id} --reason "…"`;
    assert.equal(item.or_command, dismiss);
    const blocked = await operate('card', 'block', id, '--reason', 'r');
    assert.deepEqual([blocked.code, blocked.json?.status], [0, 'blocked'], blocked.err);
    const left = await itemOf(id);
    assert.deepEqual([left.command, left.or_command], [dismiss, null]);
  });

  it('has an operation looked up once our record has ended it, though a workflow still runs', async () => {
    const { id, workflow } = await decided(TOP_UP, '--failed');
    await workflow.result();
    await asOwner(stack, 'DELETE FROM late_answer WHERE id = $1', [id]);
    const running = await stack.client.workflow.start(TOP_UP_CARD, {
      workflowId: workflow.workflowId,
      taskQueue: 'nobody polls it',
      args: [],
    });
    await callBack(id, TOP_UP);
    assert.equal(await isExpected(id), true);
    await running.terminate();
  });

  it('is not taken at its word: a callback about an end that a look-up confirms, or about nothing, changes nothing', async () => {
    const partner = await fundedPartner(stack);
    const { json } = await createCard(partner, { amount: 10_000 }, { mode: 'live' });
    const test = await createCard(partner, { amount: 10_000 });
    const ids = [json.id, test.json.id, newId('card')];
    for (const id of ids) await callBack(id, ISSUANCE);
    for (const id of ids) {
      await until('it is looked up', async () => !(await isExpected(id)));
      assert.equal(await itemOf(id), undefined);
    }
  });
});
