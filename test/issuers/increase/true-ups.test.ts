import assert from 'node:assert/strict';
import type { FakeIncrease } from '../../../dev/increase/fake-increase.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import {
  authorize,
  type IncreaseCard,
  liveCard,
  read,
  startIncreaseStack,
  untilRead,
} from '../../support/adapters/increase-stack.ts';
import { assertLedgerClean } from '../../support/money.ts';
import { environmentOf, operateIn } from '../../support/operator/operate.ts';
import { asOwner } from '../../support/postgres.ts';
import type { TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;

describe("a card's account at Increase", () => {
  let stack: TestStack;
  let fake: FakeIncrease;
  let stop: () => Promise<void>;
  let card: IncreaseCard;
  before(async () => {
    ({ stack, fake, stop } = await startIncreaseStack());
  });
  beforeEach(async () => {
    card = await liveCard(stack);
  });
  afterEach(() => fake.faults.clear());
  after(async () => {
    await assertLedgerClean(stack);
    await stop();
  });

  interface TrueUp {
    id: string;
    direction: string;
    status: string;
    amount_cents: string;
    reason: string | null;
    attempts: number;
  }
  const trueUps = ({ cardId } = card) =>
    asOwner<TrueUp>(
      stack,
      `SELECT id, direction, status, amount_cents, reason, attempts FROM true_up
       WHERE card_id = $1 ORDER BY created_at, id`,
      [cardId],
    );
  const makeDue = () =>
    asOwner(stack, "UPDATE true_up SET retry_after = '-infinity' WHERE card_id = $1", [card.cardId]);
  const call = async (verb: string, body: object = {}, of = card) => {
    const path = `/cards/${of.cardId}/${verb}`;
    const answer = await of.partner.call('POST', path, { ...live, body, idempotencyKey: newId('req') });
    assert.ok([200, 201].includes(answer.status), answer.text);
  };
  const settle = (amount: number, pendingTransactionId?: string) =>
    fake.simulations.settle({
      card_id: card.networkCardId,
      amount,
      ...(pendingTransactionId && { pending_transaction_id: pendingTransactionId }),
    });
  const centsThere = ({ networkCardId } = card) =>
    fake.bank.books.cents[fake.bank.card(networkCardId).account_id] ?? 0;
  const transfersFor = (direction: 'to_card' | 'from_card', id = 'tru_') => {
    const { account_id: accountId } = fake.bank.card(card.networkCardId);
    return fake.bank.books.transfers
      .filter((one) => one.idempotency_key?.startsWith(id))
      .filter((one) => (direction === 'to_card' ? one.destination_account_id : one.account_id) === accountId)
      .map(({ amount }) => amount);
  };

  /** Once everything is moved, with what the ledger says. */
  async function assertEven(balanceCents: number): Promise<void> {
    await untilRead(stack, fake);
    await until('everything is moved', async () =>
      (await trueUps()).every(({ status }) => status === 'succeeded'),
    );
    assert.equal((await read(card)).balance, balanceCents);
    assert.equal(centsThere(), balanceCents);
  }

  it('has what the ledger says after a clearing above the balance, so that later money is whole', async () => {
    const payment = await authorize(fake, card, { amount: 10_000 });
    const pending = payment.elements[0]?.card_authorization?.pending_transaction_id ?? '';
    settle(11_000, pending);
    await assertEven(0);
    assert.deepEqual(transfersFor('to_card'), [1_000]);
    await call('topups', { amount: 5_000 });
    await assertEven(5_000);
    await authorize(fake, card, { amount: 5_000 });
    await untilRead(stack, fake);
    assert.equal((await read(card)).available_balance, 0);
    fake.simulations.expire({ card_payment_id: fake.bank.books.payments.at(-1)?.id ?? '' });
    await untilRead(stack, fake);
    await call('block');
    await assertEven(0);
  });

  it('has what the ledger says after a purchase that reaches the card after its block, and after its refund', async () => {
    await call('block');
    await assertEven(0);
    const bought = settle(900);
    await assertEven(0);
    assert.deepEqual(transfersFor('to_card'), [900]);
    fake.simulations.refund(bought, 900);
    await assertEven(0);
    assert.deepEqual(transfersFor('from_card'), [10_000, 900]);
    assert.ok((await trueUps()).every(({ attempts }) => attempts === 1));
    assert.equal((await card.partner.call('GET', '/balance', live)).json.held, 0);
  });

  it('is not asked to give back anything before it is covered', async () => {
    fake.faults.add({ fault: 'internal error', request: 'POST /account_transfers' });
    const bought = settle(11_000);
    await untilRead(stack, fake);
    fake.simulations.refund(bought, 2_000);
    await untilRead(stack, fake);
    await call('block');
    await until('the cover is asked for again', async () => {
      await makeDue();
      return ((await trueUps())[0]?.attempts ?? 0) > 2;
    });
    const [, waiting] = await trueUps();
    assert.deepEqual(
      [waiting?.direction, waiting?.amount_cents, waiting?.status, waiting?.attempts],
      ['from_card', '2000', 'pending', 0],
    );
    fake.faults.clear();
    await makeDue();
    await assertEven(0);
    assert.equal((await trueUps())[1]?.attempts, 1);
  });

  it('gives back what Increase still holds once it does not, with the same key, and is refused only when that is too old', async () => {
    const held = () => trueUps().then((rows) => rows.find(({ amount_cents }) => amount_cents === '3000'));
    /** Our authorization ends; Increase goes on holding its money. */
    const expireBeforeIncrease = async () => {
      await call('block');
      await until('the free money is back', () => centsThere() === 3_000);
      await asOwner(
        stack,
        `WITH over AS (UPDATE card_authorization SET expires_at = now() - interval '1 second' WHERE card_id = $1)
         UPDATE payment SET said = said || '{"expiresAt": null}' WHERE card_id = $1`,
        [card.cardId],
      );
    };
    const untilNotYet = () =>
      until('Increase says no', async () => {
        await makeDue();
        return (await held())?.reason === 'invalid_operation_error';
      });
    const payment = await authorize(fake, card, { amount: 3_000 });
    await untilRead(stack, fake);
    await expireBeforeIncrease();
    await untilNotYet();
    assert.equal((await held())?.status, 'pending');
    fake.simulations.expire({ card_payment_id: payment.id });
    await makeDue();
    await assertEven(0);
    assert.deepEqual(transfersFor('from_card', (await held())?.id), [3_000]);

    card = await liveCard(stack);
    await authorize(fake, card, { amount: 3_000 });
    await untilRead(stack, fake);
    await expireBeforeIncrease();
    await untilNotYet();
    const dayAgo = newId('tru', new Date(Date.now() - 86_400_000));
    await asOwner(stack, 'UPDATE true_up SET token = $1 WHERE id = $2', [dayAgo, (await held())?.id]);
    await until('it is refused', async () => {
      await makeDue();
      return (await held())?.status === 'refused';
    });
    assert.equal((await held())?.reason, 'invalid_operation_error');
  });

  /** Starts another worker, which finds keys of this age too old. */
  async function restartWorker(networkKeyLifetimeMs: number): Promise<void> {
    Object.assign(stack.config, { networkKeyLifetimeMs });
    await stack.stopWorker();
    await stack.startWorker();
  }

  it('is looked for, and not asked for anew, once its return is older than NETWORK_KEY_LIFETIME', async () => {
    const neverMoved = await liveCard(stack);
    fake.faults.add({ fault: 'lost after acting', request: 'POST /account_transfers', times: 1 });
    fake.faults.add({ fault: 'internal error', request: 'GET /account_transfers' });
    await call('block');
    await until('it was moved', () => centsThere() === 0);
    fake.faults.add({ fault: 'internal error', request: 'POST /account_transfers' });
    await call('block', {}, neverMoved);
    const { networkKeyLifetimeMs } = stack.config;
    await restartWorker(0);
    // A key that Increase has forgotten would move the money again.
    fake.faults.clear();
    const transfers = fake.bank.books.transfers.length;
    await asOwner(stack, "UPDATE true_up SET retry_after = '-infinity' WHERE status = 'pending'");
    await until('the one was found', async () => (await trueUps())[0]?.status === 'succeeded');
    const refused = await until('the other was not', async () => {
      const [row] = await trueUps(neverMoved);
      return row?.status === 'refused' && row;
    });
    assert.equal(refused.reason, 'key_expired');
    assert.equal(fake.bank.books.transfers.length, transfers);
    const operate = operateIn(environmentOf(stack.config));
    const items: { id: string; reason: string }[] = (await operate('attention', 'list')).json;
    assert.match(items.find(({ id }) => id === refused.id)?.reason ?? '', /too old to be sent/);
    const retried = await operate('true-up', 'retry', refused.id, '--reason', 'no transfer at Increase');
    assert.equal(retried.code, 0, retried.err);
    await restartWorker(networkKeyLifetimeMs);
    await until('it is asked for under another key', () => centsThere(neverMoved) === 0);
  });
});
