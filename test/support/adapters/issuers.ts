import assert from 'node:assert/strict';
import { type EventAsked, makeCard } from '../../../dev/lithic/objects.ts';
import type { startTestStack, TestStack } from '../stack.ts';
import { increaseConfigOf } from './increase.ts';
import { startIncreaseStack } from './increase-stack.ts';
import { API_KEY, startLithicStack } from './lithic.ts';

const DAY_MS = 86_400_000;

type StackOptions = Parameters<typeof startTestStack>[1];
type Undo = () => void;

/** A stack with an issuer, and what happens there. What changes its books behind our back gives a way back. */
export interface Issuer {
  stack: TestStack;
  keys: NodeJS.ProcessEnv;
  /** Of a card that has not paid: itself, and its load if the issuer holds its money. */
  matchedOfCard: number;
  /** The field that we can not read of a spoilt payment. */
  spoiltField: string;
  stop(): Promise<void>;
  /** Once it has posted everything. */
  posted(): Promise<void>;
  /** What happens meanwhile is not posted. @returns a function that posts it after all */
  unposted(act: () => Promise<unknown>): Promise<() => Promise<void>>;
  /** An approved authorization, which a request of ours decided. */
  authorize(networkCardId: string, cents: number, daysAgo?: number): Promise<PaymentAtIssuer>;
  makeCardByHand(): { id: string; undo: Undo };
  loseCard(networkCardId: string): Undo;
  freezeCard(networkCardId: string): Undo;
  /** Its next answers fail, each kind once or twice. */
  failSome(): void;
  /** Every answer about payments fails. */
  fail(): Undo;
  /** A payment is listed, and can't be read by itself. */
  failReading(paymentId: string): Undo;
}

/** A payment as the issuer has it. */
export interface PaymentAtIssuer {
  id: string;
  /** @returns the element's id */
  clear(cents: number): string;
  /** Of its clearing. @returns the element's id */
  refund(cents: number): string;
  /** Its only clearing has another amount. */
  changeClearing(cents: number): Undo;
  /** It has a field that we can't read. */
  spoil(): Undo;
  /** It has no longer got its last element. */
  loseLast(): Undo;
  /** It is made anew, so that it is listed again. */
  relist(): Undo;
  lose(): Undo;
}

export function takeOut<One>(list: One[], one: One): Undo {
  list.splice(list.indexOf(one), 1);
  return () => void list.push(one);
}

function loseLast<One>(list: One[]): Undo {
  const last = list.at(-1) ?? assert.fail('it is empty');
  return takeOut(list, last);
}

export function change<One, Key extends keyof One>(one: One, key: Key, value: One[Key]): Undo {
  const before = one[key];
  one[key] = value;
  return () => {
    one[key] = before;
  };
}

export const ISSUERS: Record<string, (options?: StackOptions) => Promise<Issuer>> = {
  async Increase(options) {
    const { fake, stack, stop } = await startIncreaseStack({}, options);
    const { bank, simulations, delivery, faults } = fake;
    const { apiKey, baseUrl, fundingAccountId } = increaseConfigOf(fake);
    return {
      stack,
      stop,
      keys: {
        INCREASE_API_KEY: apiKey,
        INCREASE_BASE_URL: baseUrl,
        INCREASE_FUNDING_ACCOUNT_ID: fundingAccountId,
      },
      matchedOfCard: 2,
      spoiltField: 'card_id',
      posted: () => delivery.idle(),
      async unposted(act) {
        delivery.hold();
        await act();
        const unsent: Parameters<typeof delivery.send>[0][] = [];
        delivery.release((held) => {
          unsent.push(...held);
          return [];
        });
        return async () => {
          for (const event of unsent) delivery.send(event);
          await delivery.idle();
        };
      },
      async authorize(card_id, amount, daysAgo = 0) {
        bank.aheadMs = -daysAgo * DAY_MS;
        const { pending_transaction: pending } = await simulations.authorize({ card_id, amount });
        bank.aheadMs = 0;
        const id = pending?.source.card_authorization?.card_payment_id ?? '';
        const payment = bank.books.payments.find((one) => one.id === id);
        assert.ok(payment && pending);
        const settlement = () => {
          const found = payment.elements.find(({ card_settlement }) => card_settlement != null);
          return found?.card_settlement ?? assert.fail('it has no clearing');
        };
        return {
          id,
          clear(cents) {
            const asked = { card_id, amount: cents, pending_transaction_id: pending.id };
            return simulations.settle(asked, cents < pending.held_amount).id;
          },
          refund(cents) {
            simulations.refund(settlement(), cents);
            return payment.elements.at(-1)?.card_refund?.id ?? assert.fail('it has no refund');
          },
          loseLast: () => loseLast(payment.elements),
          relist: () => change(payment, 'created_at', new Date().toISOString()),
          changeClearing: (cents) => change(settlement(), 'amount', cents),
          spoil: () => change(payment, 'card_id', ''),
          lose: () => takeOut(bank.books.payments, payment),
        };
      },
      makeCardByHand() {
        const account = bank.openAccount({ name: 'by hand' }, null);
        const card = bank.makeCard({ account_id: account.id, description: 'by hand' }, null);
        return { id: card.id, undo: () => void takeOut(bank.books.cards, card) };
      },
      loseCard: (id) => takeOut(bank.books.cards, bank.card(id)),
      freezeCard: (id) => change(bank.card(id), 'status', 'disabled'),
      failSome() {
        faults.add({ fault: 'internal error', request: 'GET /cards', times: 1 });
        faults.add({ fault: 'rate limited', request: 'GET /cards', times: 1 });
        faults.add({ fault: 'lost before acting', request: 'GET /account_transfers', times: 1 });
        faults.add({ fault: 'hang', request: 'GET /account_transfers', times: 1 });
        faults.add({ fault: 'not JSON', request: 'GET /card_payments', times: 2 });
      },
      fail() {
        faults.add({ fault: 'internal error', request: 'GET /card_payments' });
        return () => faults.clear();
      },
      failReading: (id) => faults.add({ fault: 'internal error', request: `GET /card_payments/${id}` }),
    };
  },
  async Lithic(options) {
    const { fake, stack, stop } = await startLithicStack({}, options);
    const { program, faults } = fake;
    const { posts, cards, transactions } = program;
    return {
      stack,
      stop,
      keys: { LITHIC_API_KEY: API_KEY, LITHIC_BASE_URL: fake.url },
      matchedOfCard: 1,
      spoiltField: 'updated',
      posted: () => posts.idle(),
      async unposted(act) {
        const { length } = posts.events;
        posts.holdsEvents = true;
        await act();
        const unsent = posts.events.splice(length);
        posts.holdsEvents = false;
        return async () => {
          for (const event of unsent) assert.equal(await posts.send(event), 200);
        };
      },
      async authorize(token, amount, daysAgo = 0) {
        program.advance(-daysAgo * DAY_MS);
        const transaction = await program.authorize({ card: program.card(token), amount });
        program.advance(daysAgo * DAY_MS);
        const record = (event: EventAsked) => {
          program.record(transaction, event);
          return transaction.events.at(-1)?.token ?? assert.fail('it has no event');
        };
        return {
          id: transaction.token,
          clear: (cents) => record({ type: 'CLEARING', amount: cents }),
          refund: (cents) => record({ type: 'RETURN', amount: cents, polarity: 'CREDIT' }),
          loseLast: () => loseLast(transaction.events),
          relist: () => change(transaction, 'created', new Date().toISOString()),
          changeClearing(cents) {
            const clearing = transaction.events.find(({ type }) => type === 'CLEARING');
            assert.ok(clearing);
            const amounts = structuredClone(clearing.amounts);
            for (const one of Object.values(amounts)) if (one !== null) one.amount = cents;
            return change(clearing, 'amounts', amounts);
          },
          spoil: () => change(transaction, 'updated', 'yesterday'),
          lose() {
            transactions.delete(transaction.token);
            return () => void transactions.set(transaction.token, transaction);
          },
        };
      },
      makeCardByHand() {
        const card = makeCard({ memo: 'by hand' }, new Date());
        cards.set(card.token, card);
        return { id: card.token, undo: () => void cards.delete(card.token) };
      },
      loseCard(token) {
        const card = program.card(token);
        cards.delete(token);
        return () => void cards.set(token, card);
      },
      freezeCard: (token) => change(program.card(token), 'state', 'PAUSED'),
      failSome() {
        faults.add({ fault: '500 before', request: 'GET /v1/cards', times: 1 });
        faults.add({ fault: 'rate limited', request: 'GET /v1/cards', times: 1 });
        faults.add({ fault: 'lost after', request: 'GET /v1/transactions', times: 2 });
      },
      fail() {
        faults.add({ fault: '500 before', request: 'GET /v1/transactions', times: 3 });
        return () => faults.clear();
      },
      failReading: (id) => faults.add({ fault: '500 before', request: `GET /v1/transactions/${id}` }),
    };
  },
};
