import assert from 'node:assert/strict';
import { simulatedNetworkCredentials, simulatedNetworkSecrets } from '../../issuers/simulated/credentials.ts';
import { signBody } from '../../issuers/simulated/signature.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { TOP_UP_CARD } from '../../workflows/messages.ts';
import { createCard } from '../support/cards.ts';
import { claimOf } from '../support/claims.ts';
import { assertBalance, assertLedgerClean, balanceOf, fundedPartner } from '../support/money.ts';
import { ACTOR, environmentOf, lastAudit, type Operate, operateIn } from '../support/operator/operate.ts';
import { NEVER_FINISHES } from '../support/operator/resolving.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { SILENT_KINDS, type SilentKind } from '../support/silent-operations.ts';
import type { TestStack } from '../support/stack.ts';
import { transfer } from '../support/transfers.ts';
import { until } from '../support/until.ts';

/** Types of the network's callbacks. */
type Callback = 'card.issuance' | 'card.topup' | 'card.withdrawal';

interface Decided {
  kind: SilentKind;
  command: 'topup' | 'withdrawal';
  listed: 'card_topup' | 'card_withdrawal';
  callback: Callback;
  loaded: string;
  /** What the row of a booked one says besides its status. */
  booked: object;
}

const [ISSUANCE, TOP_UP, WITHDRAWAL] = SILENT_KINDS as [SilentKind, SilentKind, SilentKind];
const DECIDED: Record<string, Decided> = {
  'a top-up': {
    ...{ kind: TOP_UP, command: 'topup', listed: 'card_topup', callback: 'card.topup' },
    loaded: 'loaded the card',
    booked: {},
  },
  'a withdrawal': {
    ...{ kind: WITHDRAWAL, command: 'withdrawal', listed: 'card_withdrawal', callback: 'card.withdrawal' },
    loaded: 'taken the money off the card',
    booked: { card_balance: 20_000 - NEVER_FINISHES },
  },
};

describe('the network, if it contradicts a decision made by hand,', () => {
  let stack: TestStack;
  let operate: Operate;
  let secret: string;
  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
    secret = simulatedNetworkCredentials(simulatedNetworkSecrets(stack.operator.ring)[0]).callbackSecret;
  });
  after(() => assertLedgerClean(stack));

  async function callBack(token: string, type: Callback): Promise<void> {
    const body = JSON.stringify({ token, type });
    const response = await fetch(`http://${stack.config.host}:${stack.config.port}/network/callbacks`, {
      method: 'POST',
      body,
      headers: { 'x-network-signature': signBody(body, secret) },
    });
    assert.equal(response.status, 204);
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
  /** The network carries out what it had only accepted. */
  const complete = (id: string, outcome = 'succeeded') =>
    asOwner(
      stack,
      'UPDATE simulated_network.operation SET completes_at = clock_timestamp(), outcome = $2 WHERE token = $1',
      [id, outcome],
    );

  /** An operation that an operator has decided after its deadline. */
  async function decided({ kind, command, listed }: Decided, outcome: '--failed' | '--succeeded') {
    const silent = await kind.begin(stack);
    const { card_id: cardId = '' } = ((await silent.row()) ?? {}) as { card_id?: string };
    await silent.age();
    assert.equal((await itemOf(silent.id)).kind, listed);
    const { code, err } = await operate(command, 'resolve', silent.id, outcome, '--reason', 'r');
    assert.equal(code, 0, err);
    assert.equal(await itemOf(silent.id), undefined);
    return { ...silent, cardId };
  }

  for (const [name, what] of Object.entries(DECIDED)) {
    const { kind, command, callback, loaded, booked } = what;

    it(`has ${name} listed that it has carried out although it failed, which is then booked once`, async () => {
      const { id, cardId, partner, ...silent } = await decided(what, '--failed');
      await complete(id);
      await callBack(id, callback);
      const item = await untilListed(id, 'network_contradiction');
      assert.match(
        item.reason,
        new RegExp(`${kind.name.slice(2)} failed, and the network has ${loaded}: book it now`),
      );
      assert.equal(item.command, `npm run operator -- ${command} book ${id} --reason "…"`);
      assert.equal(item.or_command, `npm run operator -- ${command} dismiss ${id} --reason "…"`);
      const spentCents = silent.spentBeforeCents;
      await assertBalance(stack, partner, 'live', { spentCents, heldCents: 0 });

      const { code, json, err } = await operate(command, 'book', id, '--reason', 'ticket 4711');
      assert.deepEqual([code, json?.status, json?.failure_code], [0, 'succeeded', null], err);
      assert.deepEqual(json, { ...json, ...booked });
      assert.deepEqual(await lastAudit(operate), {
        ...{ actor: ACTOR, action: `${command}.book`, subject: id },
        detail: { partnerId: partner.id, mode: 'live', cardId, said: 'yes', reason: 'ticket 4711' },
      });
      assert.deepEqual(await silent.events(), [kind.told.no, kind.told.yes]);
      await assertBalance(stack, partner, 'live', {
        spentCents: spentCents + silent.costCents,
        heldCents: 0,
      });
      const ofCard = ['ledger', 'transactions', partner.id, '--mode', 'live', '--card', cardId];
      const changes: { type: string; source: { id: string } }[] = (await operate(...ofCard)).json;
      assert.equal(changes.filter(({ type, source }) => type === what.listed && source.id === id).length, 1);
      assert.equal(await itemOf(id), undefined);
      const again = await operate(command, 'book', id, '--reason', 'r');
      assert.equal(again.code, 1);
      assert.match(again.err, /there is nothing to book/);
    });

    it(`has ${name} listed that it has not carried out although an operator decided so`, async () => {
      const { id } = await decided(what, '--succeeded');
      await complete(id, 'failed');
      await callBack(id, callback);
      const item = await untilListed(id, 'network_contradiction');
      assert.match(item.reason, new RegExp(`has not ${loaded}`));
      const refused = await operate(command, 'book', id, '--reason', 'r');
      assert.match(refused.err, /has not carried out .*: there is nothing to book/);
      // It settles that itself.
      await complete(id);
      await callBack(id, callback);
      await until('it is settled', async () => !(await isExpected(id)));
      assert.equal(await itemOf(id), undefined);
    });
  }

  it('has a top-up booked whose row was deleted with its refusal, once the balance covers it', async () => {
    const { id, partner, age } = await TOP_UP.begin(stack);
    await age();
    await asOwner(
      stack,
      // The sweep of abandoned claims would answer it again.
      `UPDATE idempotency_claim SET response_status = NULL, response_body = NULL, sweep_after = 'infinity' WHERE id = $1`,
      [await claimOf(stack, id)],
    );
    await operate('topup', 'resolve', id, '--failed', '--reason', 'r');
    await until('its row is gone', async () => (await operate('topup', 'show', id)).code === 1);
    const [available = 0] = await balanceOf(partner, 'live');
    const adjust = (cents: number) =>
      operate('partner', 'adjust', partner.id, '--mode', 'live', '--amount', String(cents), '--reason', 'r');
    assert.equal((await adjust(-available)).code, 0);
    await complete(id);
    await callBack(id, 'card.topup');
    await untilListed(id, 'network_contradiction');

    const refused = await operate('topup', 'book', id, '--reason', 'r');
    assert.match(refused.err, /was not booked: the partner's balance does not cover it/);
    assert.match((await itemOf(id)).reason, /does not cover it/);
    assert.equal((await adjust(available)).code, 0);
    const booked = await operate('topup', 'book', id, '--reason', 'r');
    assert.deepEqual([booked.code, booked.json?.status], [0, 'succeeded'], booked.err);
  });

  it('has a top-up of a card that is blocked meanwhile booked with the balance that is left: none', async () => {
    const { id, cardId, partner } = await decided(DECIDED['a top-up'] as Decided, '--failed');
    const blocked = await operate('card', 'block', cardId, '--reason', 'r');
    assert.equal(blocked.code, 0, blocked.err);
    const before = await balanceOf(partner, 'live');
    await complete(id);
    await callBack(id, 'card.topup');
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
    const { id, cardId, partner } = await decided(DECIDED['a withdrawal'] as Decided, '--failed');
    const spent = await transfer('withdrawal', { partner, mode: 'live', cardId }, 19_900);
    assert.equal(spent.status, 201, spent.text);
    await complete(id);
    await callBack(id, 'card.withdrawal');
    await untilListed(id, 'network_contradiction');
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

  /** An issuance that an operator has decided after its deadline. @returns the card's id */
  async function decidedCard(outcome: '--failed' | '--issued'): Promise<string> {
    const { id, age } = await ISSUANCE.begin(stack);
    await age();
    const { code, err } = await operate('card', 'resolve', id, outcome, '--reason', 'r');
    assert.equal(code, 0, err);
    return id;
  }

  it('has a failed issuance listed that it has issued after all, until an operator dismisses it', async () => {
    const id = await decidedCard('--failed');
    await complete(id);
    await callBack(id, 'card.issuance');
    const item = await untilListed(id, 'network_contradiction');
    assert.match(item.reason, /the network has issued the card as \S+: have the network close it/);
    assert.equal(item.command, `npm run operator -- card dismiss ${id} --reason "…"`);
    const { code, err } = await operate('card', 'dismiss', id, '--reason', 'closed, ticket 4711');
    assert.equal(code, 0, err);
    assert.equal(await itemOf(id), undefined);
    await callBack(id, 'card.issuance');
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
    const id = await decidedCard('--issued');
    await complete(id, 'failed');
    await callBack(id, 'card.issuance');
    const item = await untilListed(id, 'network_contradiction');
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
    const { id, workflow } = await decided(DECIDED['a top-up'] as Decided, '--failed');
    await workflow.result();
    await asOwner(stack, 'DELETE FROM late_answer WHERE id = $1', [id]);
    const running = await stack.client.workflow.start(TOP_UP_CARD, {
      workflowId: workflow.workflowId,
      taskQueue: 'nobody polls it',
      args: [],
    });
    await callBack(id, 'card.topup');
    assert.equal(await isExpected(id), true);
    await running.terminate();
  });

  it('is not taken at its word: a callback about an end that a look-up confirms, or about nothing, changes nothing', async () => {
    const partner = await fundedPartner(stack);
    const { json } = await createCard(partner, { amount: 10_000 }, { mode: 'live' });
    const test = await createCard(partner, { amount: 10_000 });
    const ids = [json.id, test.json.id, newId('card')];
    for (const id of ids) await callBack(id, 'card.issuance');
    for (const id of ids) {
      await until('it is looked up', async () => !(await isExpected(id)));
      assert.equal(await itemOf(id), undefined);
    }
  });
});
