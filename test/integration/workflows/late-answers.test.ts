import assert from 'node:assert/strict';
import {
  simulatedNetworkCredentials,
  simulatedNetworkSecrets,
} from '../../../adapters/card-networks/simulated/credentials.ts';
import { signBody } from '../../../adapters/card-networks/simulated/signature.ts';
import { newId } from '../../../crypto/new-id.ts';
import { createCard, eventTypes } from '../../support/cards.ts';
import { claimOf } from '../../support/claims.ts';
import { assertBalance, assertLedgerClean, balanceOf, fundedPartner, priceOf } from '../../support/money.ts';
import { ACTOR, environmentOf, lastAudit, type Operate, operateIn } from '../../support/operator/operate.ts';
import { NEVER_FINISHES } from '../../support/operator/resolving.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { createTopUp } from '../../support/top-ups.ts';
import { until } from '../../support/until.ts';
import { createWithdrawal } from '../../support/withdrawals.ts';

const CARD_CENTS = 10_000;
const TOP_UP_PRICE = priceOf(NEVER_FINISHES, 'card_topup');

describe('the network, if it contradicts a decision made by hand,', function () {
  this.timeout(180_000);
  let stack: TestStack;
  let partner: TestPartner;
  let operate: Operate;
  let secret: string;
  before(async () => {
    stack = await startTestStack({
      issuanceDeadlineMs: 1_000,
      topUpDeadlineMs: 1_000,
      withdrawalDeadlineMs: 1_000,
    });
    operate = operateIn(environmentOf(stack.config));
    secret = simulatedNetworkCredentials(simulatedNetworkSecrets(stack.operator.ring)[0]).callbackSecret;
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  async function callBack(
    token: string,
    type: 'card.issuance' | 'card.topup' | 'card.withdrawal',
  ): Promise<void> {
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

  /** A top-up that an operator has decided, and the card. */
  async function decidedTopUp(outcome: '--failed' | '--succeeded'): Promise<{ id: string; cardId: string }> {
    const card = await createCard(partner, { amount: CARD_CENTS }, { mode: 'live' });
    const topUp = await createTopUp(partner, 'live', card.json.id, NEVER_FINISHES);
    assert.equal(topUp.status, 202, topUp.text);
    await untilListed(topUp.json.id, 'card_topup');
    const { code, err } = await operate('topup', 'resolve', topUp.json.id, outcome, '--reason', 'r');
    assert.equal(code, 0, err);
    assert.equal(await itemOf(topUp.json.id), undefined);
    return { id: topUp.json.id, cardId: card.json.id };
  }

  it('has a failed top-up listed that it has loaded after all, which is then booked once', async () => {
    const { id, cardId } = await decidedTopUp('--failed');
    await complete(id);
    await callBack(id, 'card.topup');
    const item = await untilListed(id, 'network_contradiction');
    assert.match(item.reason, /the top-up failed, and the network has loaded the card: book it now/);
    assert.equal(item.command, `npm run operator -- topup book ${id} --reason "…"`);
    assert.equal(item.or_command, `npm run operator -- topup dismiss ${id} --reason "…"`);
    await assertBalance(stack, partner, 'live', { spentCents: priceOf(CARD_CENTS), heldCents: 0 });

    const { code, json, err } = await operate('topup', 'book', id, '--reason', 'ticket 4711');
    assert.deepEqual([code, json?.status, json?.failure_code], [0, 'succeeded', null], err);
    assert.deepEqual(await lastAudit(operate), {
      ...{ actor: ACTOR, action: 'topup.book', subject: id },
      detail: { partnerId: partner.id, mode: 'live', cardId, said: 'yes', reason: 'ticket 4711' },
    });
    assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'topup.failed', 'topup.succeeded']);
    const spentCents = priceOf(CARD_CENTS) + TOP_UP_PRICE;
    await assertBalance(stack, partner, 'live', { spentCents, heldCents: 0 });
    assert.equal(await itemOf(id), undefined);
    const again = await operate('topup', 'book', id, '--reason', 'r');
    assert.equal(again.code, 1);
    assert.match(again.err, /there is nothing to book/);
  });

  it('has a top-up booked whose row was deleted with its refusal, once the balance covers it', async () => {
    const card = await createCard(partner, { amount: CARD_CENTS }, { mode: 'live' });
    const { json } = await createTopUp(partner, 'live', card.json.id, NEVER_FINISHES);
    await untilListed(json.id, 'card_topup');
    await asOwner(
      stack,
      'UPDATE idempotency_claim SET response_status = NULL, response_body = NULL WHERE id = $1',
      [await claimOf(stack, json.id)],
    );
    await operate('topup', 'resolve', json.id, '--failed', '--reason', 'r');
    assert.equal((await operate('topup', 'show', json.id)).code, 1);
    const [available = 0] = await balanceOf(partner, 'live');
    const adjust = (cents: number) =>
      operate('partner', 'adjust', partner.id, '--mode', 'live', '--amount', String(cents), '--reason', 'r');
    assert.equal((await adjust(-available)).code, 0);
    await complete(json.id);
    await callBack(json.id, 'card.topup');
    await untilListed(json.id, 'network_contradiction');

    const refused = await operate('topup', 'book', json.id, '--reason', 'r');
    assert.match(refused.err, /was not booked: the partner's balance does not cover it/);
    assert.match((await itemOf(json.id)).reason, /does not cover it/);
    assert.equal((await adjust(available)).code, 0);
    const booked = await operate('topup', 'book', json.id, '--reason', 'r');
    assert.deepEqual([booked.code, booked.json?.status], [0, 'succeeded'], booked.err);
  });

  it('has a top-up listed that it has not loaded although an operator decided so', async () => {
    const { id } = await decidedTopUp('--succeeded');
    await complete(id, 'failed');
    await callBack(id, 'card.topup');
    const item = await untilListed(id, 'network_contradiction');
    assert.match(item.reason, /has not loaded the card/);
    const refused = await operate('topup', 'book', id, '--reason', 'r');
    assert.match(refused.err, /has not carried out .*: there is nothing to book/);
    // It settles that itself.
    await complete(id);
    await callBack(id, 'card.topup');
    await until('it is settled', async () => !(await isExpected(id)));
    assert.equal(await itemOf(id), undefined);
  });

  /** A withdrawal that an operator has decided, from a card of twice its amount. */
  async function decidedWithdrawal(
    outcome: '--failed' | '--succeeded',
  ): Promise<{ id: string; cardId: string }> {
    const card = await createCard(partner, { amount: 2 * NEVER_FINISHES }, { mode: 'live' });
    const withdrawal = await createWithdrawal(partner, 'live', card.json.id, NEVER_FINISHES);
    assert.equal(withdrawal.status, 202, withdrawal.text);
    await untilListed(withdrawal.json.id, 'card_withdrawal');
    const resolve = ['withdrawal', 'resolve', withdrawal.json.id, outcome, '--reason', 'r'];
    const { code, err } = await operate(...resolve);
    assert.equal(code, 0, err);
    assert.equal(await itemOf(withdrawal.json.id), undefined);
    return { id: withdrawal.json.id, cardId: card.json.id };
  }

  it('has a failed withdrawal listed that it has made after all, which is then booked once', async () => {
    const { id, cardId } = await decidedWithdrawal('--failed');
    await complete(id);
    await callBack(id, 'card.withdrawal');
    const item = await untilListed(id, 'network_contradiction');
    assert.match(item.reason, /the withdrawal failed, and the network has taken the money off the card/);
    assert.equal(item.command, `npm run operator -- withdrawal book ${id} --reason "…"`);
    assert.equal(item.or_command, `npm run operator -- withdrawal dismiss ${id} --reason "…"`);

    const { code, json, err } = await operate('withdrawal', 'book', id, '--reason', 'ticket 4711');
    assert.deepEqual([code, json?.status, json?.failure_code], [0, 'succeeded', null], err);
    assert.equal(json.card_balance, NEVER_FINISHES);
    assert.deepEqual(await lastAudit(operate), {
      actor: ACTOR,
      action: 'withdrawal.book',
      subject: id,
      detail: { partnerId: partner.id, mode: 'live', cardId, said: 'yes', reason: 'ticket 4711' },
    });
    assert.deepEqual(await eventTypes(stack, cardId), [
      'card.issued',
      'withdrawal.failed',
      'withdrawal.succeeded',
    ]);
    const spentCents = priceOf(2 * NEVER_FINISHES) - NEVER_FINISHES;
    await assertBalance(stack, partner, 'live', { spentCents, heldCents: 0 });
    assert.equal(await itemOf(id), undefined);
    const again = await operate('withdrawal', 'book', id, '--reason', 'r');
    assert.match(again.err, /there is nothing to book/);
    const changes = await operate(
      'ledger',
      'transactions',
      partner.id,
      '--mode',
      'live',
      '--card',
      cardId,
      '--limit',
      '1',
    );
    assert.deepEqual([changes.json[0].type, changes.json[0].source.id], ['card_withdrawal', id]);
  });

  it('has no withdrawal booked from a card that has no longer got the money, or is blocked', async () => {
    const { id, cardId } = await decidedWithdrawal('--failed');
    const spent = await createWithdrawal(partner, 'live', cardId, 2 * NEVER_FINISHES - 100);
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

  it('has a withdrawal listed that it has not made although an operator decided so', async () => {
    const { id } = await decidedWithdrawal('--succeeded');
    await complete(id, 'failed');
    await callBack(id, 'card.withdrawal');
    const item = await untilListed(id, 'network_contradiction');
    assert.match(item.reason, /says that it has not taken the money off the card/);
    await complete(id);
    await callBack(id, 'card.withdrawal');
    await until('it is settled', async () => !(await isExpected(id)));
    assert.equal(await itemOf(id), undefined);
  });

  it('has a failed issuance listed that it has issued after all, until an operator dismisses it', async () => {
    const { json } = await createCard(partner, { amount: NEVER_FINISHES }, { mode: 'live' });
    await untilListed(json.id, 'card_issuance');
    await operate('card', 'resolve', json.id, '--failed', '--reason', 'r');
    await complete(json.id);
    await callBack(json.id, 'card.issuance');
    const item = await untilListed(json.id, 'network_contradiction');
    assert.match(item.reason, /the network has issued the card as \S+: have the network close it/);
    assert.equal(item.command, `npm run operator -- card dismiss ${json.id} --reason "…"`);
    const { code, err } = await operate('card', 'dismiss', json.id, '--reason', 'closed, ticket 4711');
    assert.equal(code, 0, err);
    assert.equal(await itemOf(json.id), undefined);
    await callBack(json.id, 'card.issuance');
    const rows = await asOwner<{ due: boolean }>(
      stack,
      'SELECT look_up_after <= now() AS due FROM late_answer WHERE id = $1',
      [json.id],
    );
    assert.deepEqual(rows, [{ due: false }]);
    const again = await operate('card', 'dismiss', json.id, '--reason', 'r');
    assert.match(again.err, /there is nothing to dismiss/);
  });

  it('has an issued card listed that it has not issued, with the command that blocks it', async () => {
    const { json } = await createCard(partner, { amount: NEVER_FINISHES }, { mode: 'live' });
    await untilListed(json.id, 'card_issuance');
    const resolved = await operate('card', 'resolve', json.id, '--issued', '--reason', 'r');
    assert.equal(resolved.code, 0, resolved.err);
    await complete(json.id, 'failed');
    await callBack(json.id, 'card.issuance');
    const item = await untilListed(json.id, 'network_contradiction');
    assert.match(item.reason, /the network says that it is not: block it, which returns its balance/);
    assert.equal(item.command, `npm run operator -- card block ${json.id} --reason "…"`);
    const dismiss = `npm run operator -- card dismiss ${json.id} --reason "…"`;
    assert.equal(item.or_command, dismiss);
    const blocked = await operate('card', 'block', json.id, '--reason', 'r');
    assert.deepEqual([blocked.code, blocked.json?.status], [0, 'blocked'], blocked.err);
    const left = await itemOf(json.id);
    assert.deepEqual([left.command, left.or_command], [dismiss, null]);
  });

  it('is not taken at its word: a callback about an end that a look-up confirms, or about nothing, changes nothing', async () => {
    const { json } = await createCard(partner, { amount: CARD_CENTS }, { mode: 'live' });
    const test = await createCard(partner, { amount: CARD_CENTS });
    const ids = [json.id, test.json.id, newId('card')];
    for (const id of ids) await callBack(id, 'card.issuance');
    for (const id of ids) {
      await until('it is looked up', async () => !(await isExpected(id)));
      assert.equal(await itemOf(id), undefined);
    }
  });
});
