import assert from 'node:assert/strict';
import { createCard } from '../support/cards.ts';
import { assertLedgerClean, balanceOf, fundedPartner } from '../support/money.ts';
import { environmentOf, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const live = { mode: 'live' } as const;

describe('an operation whose idempotency key is too old to be sent', () => {
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack({
      networkKeyLifetimeMs: -1,
      cardCreationWaitMs: 2_000,
      // Shorter than the first request and its repetitions take.
      issuanceDeadlineMs: 4_000,
    });
  });
  after(() => stack.stop());

  it('is only looked up, and then waits for an operator', async () => {
    const partner = await fundedPartner(stack, 100_000);
    const before = await balanceOf(partner, 'live');
    const { status, json } = await createCard(partner, { amount: 1_000 }, live);
    assert.equal(status, 202);
    const attention = async () =>
      (await operate('attention', 'list')).json.map(({ id }: { id: string }) => id);
    const operate = operateIn(environmentOf(stack.config));
    await until('its time is up', async () => (await attention()).includes(json.id));
    const sent = await asOwner(stack, 'SELECT token FROM simulated_network.operation', []);
    assert.deepEqual(sent, [], 'the network was never asked to act');
    const why = ['--failed', '--reason', 'no card at the issuer'];
    const resolved = await operate('card', 'resolve', json.id, ...why);
    assert.equal(resolved.code, 0, resolved.err);
    assert.equal((await partner.call('GET', `/cards/${json.id}`, live)).json.status, 'failed');
    assert.deepEqual(await balanceOf(partner, 'live'), before);
    await assertLedgerClean(stack);
  });

  it('ends as the network says, if the network knows it', async () => {
    const partner = await fundedPartner(stack, 100_000);
    const { status, json } = await createCard(partner, { amount: 1_000 }, live);
    assert.equal(status, 202);
    // As if the network had been asked in time, and its answer had been lost.
    await asOwner(
      stack,
      `INSERT INTO simulated_network.operation (token, kind, request, outcome, completes_at, taken_at)
       VALUES ($1, 'card.issuance', '{"bin":"424242"}', 'declined', now(), now())`,
      [json.id],
    );
    await until('it is over', async () => {
      return (await partner.call('GET', `/cards/${json.id}`, live)).json.status === 'failed';
    });
    await assertLedgerClean(stack);
  });
});
