import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { FakeIncrease } from '../../dev/increase/fake-increase.ts';
import { increaseConfigOf } from '../support/adapters/increase.ts';
import { authorize, liveCard, startIncreaseStack } from '../support/adapters/increase-stack.ts';
import { issueCard, reveal, revealingPartner } from '../support/api/reveals.ts';
import { createCard, settledCard } from '../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../support/money.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const live = { mode: 'live' } as const;

/** One of the accounts that ask for more live cards than the issuer makes. */
interface Busy {
  partner: TestPartner;
  cardId: string;
}

const BUSY_ACCOUNTS = 4;
const CARDS_OF_EACH = 3;

/** @returns the cards that were begun; a request that waits too long for others of its account is not */
async function flood(partners: readonly TestPartner[]): Promise<Busy[]> {
  const begun = await Promise.all(
    partners.flatMap((partner) =>
      Array.from({ length: CARDS_OF_EACH }, async () => {
        const { status, json, text } = await createCard(partner, { amount: 1_000 }, live);
        assert.ok([201, 202, 503].includes(status), text);
        return status === 503 ? [] : [{ partner, cardId: json.id as string }];
      }),
    ),
  );
  return begun.flat();
}

const busyPartners = (stack: TestStack) =>
  Promise.all(Array.from({ length: BUSY_ACCOUNTS }, () => fundedPartner(stack)));

describe('an issuer that does not answer', () => {
  let stack: TestStack;
  let fake: FakeIncrease;
  let stop: () => Promise<void>;
  before(async () => {
    ({ stack, fake, stop } = await startIncreaseStack({ cardCreationWaitMs: 200 }));
  });
  after(() => stop());

  it("holds up no other account's test mode, and nobody's reads", async () => {
    const busy = await busyPartners(stack);
    const other = await revealingPartner(stack);
    fake.faults.add({ fault: 'hang' });
    const begun = await flood(busy);
    assert.ok(begun.length >= BUSY_ACCOUNTS, `only ${begun.length} were begun`);
    await until('the issuer is asked', () => fake.requests.length > 0);

    for (const partner of [...busy, other]) {
      for (const mode of ['test', 'live'] as const) {
        for (const path of ['/cards', '/balance', '/transactions', '/events']) {
          assert.equal((await partner.call('GET', path, { mode })).status, 200, `${mode} ${path}`);
        }
      }
    }
    const { status, json } = await createCard(other, { amount: 1_000 });
    assert.equal(status, 201);
    const path = `/cards/${json.id}`;
    const topUp = { body: { amount: 500 }, idempotencyKey: randomUUID() };
    assert.equal((await other.call('POST', `${path}/topups`, topUp)).status, 201);
    assert.equal((await reveal(other, json.id, 'test')).status, 200);
    assert.equal((await other.call('POST', `${path}/freeze`)).status, 200);
    for (const { partner, cardId } of begun) {
      const { json } = await partner.call('GET', `/cards/${cardId}`, live);
      assert.equal(json.status, 'funding_pending', 'all of that came before any answer of the issuer');
    }

    fake.faults.clear();
    for (const { partner, cardId } of begun) {
      assert.equal((await settledCard(partner, cardId)).status, 'active');
    }
    await assertLedgerClean(stack);
  });
});

describe('an issuer that takes few requests', () => {
  let limited: Awaited<ReturnType<typeof startIncreaseStack>>;
  before(async () => {
    limited = await startIncreaseStack({ cardCreationWaitMs: 30_000 }, {}, (fake) => ({
      ...increaseConfigOf(fake),
      requestsPerSecond: 8,
    }));
  });
  after(() => limited.stop());

  it('is asked first for what authorizations and reveals need, while cards of other accounts wait', async () => {
    const { stack, fake } = limited;
    const paying = await liveCard(stack);
    const shown = await revealingPartner(stack);
    const cardId = await issueCard(shown, 'live');
    const before = fake.bank.books.accounts.length;
    const flooding = flood(await busyPartners(stack));
    await until('it makes the first of them', () => fake.bank.books.accounts.length > before);

    const payment = await authorize(fake, paying, { amount: 700 });
    assert.equal(payment.elements[0]?.card_authorization?.actioner, 'user');
    assert.equal((await reveal(shown, cardId, 'live')).status, 200);
    const made = fake.bank.books.cards.length - 2;
    assert.ok(made < BUSY_ACCOUNTS * CARDS_OF_EACH, 'all cards were made first');
    for (const { partner, cardId } of await flooding) {
      assert.equal((await settledCard(partner, cardId)).status, 'active');
    }
    await assertLedgerClean(stack);
  });
});
