import assert from 'node:assert/strict';
import type { FakeLithic } from '../../../dev/lithic/fake-lithic.ts';
import { type Card, makeCard } from '../../../dev/lithic/objects.ts';
import { API_KEY, allTaken, enrol, lithicCard, startLithicStack } from '../../support/adapters/lithic.ts';
import { createCard } from '../../support/cards.ts';
import { whyWaiting } from '../../support/inbox.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { reconciler } from '../../support/operator/reconcile.ts';
import { asOwner } from '../../support/postgres.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;
const NOTHING = { missing_here: [], missing_at_issuer: [], different: [] };

describe('operator network reconcile with Lithic', () => {
  let fake: FakeLithic;
  let stack: TestStack;
  let stop: () => Promise<void>;
  let partner: TestPartner;
  let cardId: string;
  let card: Card;
  let operator: ReturnType<typeof reconciler>;
  before(async () => {
    ({ fake, stack, stop } = await startLithicStack());
    partner = await fundedPartner(stack, 1_000_000);
    operator = reconciler(stack, { LITHIC_API_KEY: API_KEY, LITHIC_BASE_URL: fake.url });
  });
  beforeEach(async () => {
    const { program } = fake;
    program.sendsEventTokens = false;
    program.standsIn = false;
    program.posts.holdsEvents = false;
    program.posts.isDeaf = false;
    cardId = (await createCard(partner, { amount: 1_000 }, live)).json.id;
    card = await lithicCard(fake, stack, cardId);
  });
  afterEach(async () => {
    await allTaken(fake, stack);
    const left = await operator.reconcile();
    assert.deepEqual({ ...left, matched: 0 }, { matched: 0, ...NOTHING });
    assert.deepEqual(await operator.operate('attention', 'list'), []);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stop();
  });

  const transactions = async (): Promise<{ id: string; type: string; amount: number }[]> =>
    (await partner.call('GET', `/cards/${cardId}/transactions`, live)).json.data;
  const reasons = async () => (await operator.differences()).map(({ reason }) => reason).join('\n');

  it('shows one line for more than twenty of a kind, and lists them by pages', async () => {
    const byHand = Array.from({ length: 21 }, () => makeCard({ memo: 'by hand' }, new Date()));
    for (const one of byHand) fake.program.cards.set(one.token, one);
    const found = await operator.reconcile();
    assert.equal(found.missing_here.length, byHand.length);
    const lines = await operator.differences();
    assert.deepEqual(
      lines.map(({ id, reason }) => [
        id,
        reason.startsWith('21 of the kind "card" are at the issuer and not'),
      ]),
      [['missing_here', true]],
    );
    const page = ['network', 'findings', '--problem', 'missing_here', '--limit', '15'];
    const newest: { id: string; issuer_id: string }[] = await operator.operate(...page);
    const rest = await operator.operate(...page, '--before', newest.at(-1)?.id ?? '');
    assert.deepEqual([newest.length, rest.length], [15, 6]);
    assert.deepEqual(
      [...newest, ...rest].map(({ issuer_id }) => issuer_id).sort(),
      byHand.map(({ token }) => token).sort(),
    );
    for (const { token } of byHand) fake.program.cards.delete(token);
  });

  it('finds a card that was made twice for one of ours', async () => {
    const twin = makeCard({ memo: cardId }, new Date());
    fake.program.cards.set(twin.token, twin);
    const found = await operator.reconcile();
    assert.deepEqual(found.missing_here, [{ kind: 'card', id: cardId, issuer_id: twin.token }]);
    assert.match(await reasons(), /for a card of ours that has another id there/);
    // Closed, it can do no harm.
    twin.state = 'CLOSED';
  });

  it('compares all other cards if it can not read one, and says which', async () => {
    const other = await lithicCard(fake, stack, (await createCard(partner, { amount: 1_000 }, live)).json.id);
    card.state = 'LOST' as 'OPEN';
    other.state = 'PAUSED';
    const found = await operator.reconcile();
    assert.deepEqual(
      found.different.map(({ kind, issuer_id }: { kind: string; issuer_id: string }) => [kind, issuer_id]),
      [
        ['card', other.token],
        ['card', card.token],
      ],
    );
    assert.match(await reasons(), /can't read /);
    card.state = 'OPEN';
    other.state = 'OPEN';
  });

  it('finds a card whose id a person has mistyped, however old it is, and goes on', async () => {
    const give = (networkCardId: string) =>
      asOwner(stack, 'UPDATE card SET network_card_id = $2 WHERE id = $1', [cardId, networkCardId]);
    await give('mistyped');
    const expected = [{ kind: 'card', id: cardId, issuer_id: 'mistyped' }];
    assert.deepEqual((await operator.reconcile()).missing_at_issuer, expected);
    assert.deepEqual((await operator.reconcile(new Date().toISOString())).missing_at_issuer, expected);
    await give(card.token);
  });

  it("shows a payment that was booked on a card while it had another one's id, until it is dismissed", async () => {
    const other = (await createCard(partner, { amount: 1_000 }, live)).json.id;
    const otherCard = await lithicCard(fake, stack, other);
    const give = (id: string, networkCardId: string) =>
      asOwner(stack, 'UPDATE card SET network_card_id = $2 WHERE id = $1', [id, networkCardId]);
    const { token } = await fake.program.authorize({ card, amount: 300 });
    await allTaken(fake, stack);
    await give(cardId, 'freed');
    await give(other, card.token);
    await give(cardId, otherCard.token);
    const different = [{ kind: 'transaction', id: null, issuer_id: token }];
    for (const since of ['1h', new Date().toISOString()])
      assert.deepEqual((await operator.reconcile(since)).different, different);
    const [item, ...others] = await operator.differences();
    assert.deepEqual(others, []);
    const booked = `the payment is booked on ${cardId} here; the issuer has it on ${card.token}, which is ${other}`;
    assert.ok(item?.reason.startsWith(booked), item?.reason);
    await operator.operate('network', 'dismiss', item?.id ?? '', '--reason', 'adjusted, ticket 4711');
    assert.deepEqual((await operator.reconcile()).different, different);
    assert.deepEqual(await operator.differences(), []);
    await give(cardId, 'freed');
    await give(other, otherCard.token);
    await give(cardId, card.token);
  });

  it('has an operator decide about a payment on an unknown card, and then agrees with what was decided', async () => {
    const before = await operator.reconcile();
    const { program } = fake;
    const byHand = makeCard({ memo: 'by hand' }, new Date());
    program.cards.set(byHand.token, byHand);
    program.posts.holdsEvents = true;
    const payment = program.begin(byHand, {}, { type: 'CLEARING', amount: 30 });
    program.posts.events.splice(-1);
    program.cards.delete(byHand.token);
    assert.deepEqual(await operator.reconcile(), before);
    await until('it waits', async () => (await whyWaiting(stack, [payment.token]))[0] === 'card_unknown');
    assert.deepEqual(await operator.reconcile(), before);
    const [element] = payment.events;
    await operator.operate('transaction', 'dismiss', element?.token ?? '', '--reason', 'not our card');
    await until('it is done', async () => (await whyWaiting(stack, [payment.token])).length === 0);
    assert.deepEqual(await operator.reconcile(), { ...before, matched: before.matched + 1 });
  });

  for (const sendsEventTokens of [false, true]) {
    describe(`${sendsEventTokens ? 'with' : 'without'} event tokens in requests`, () => {
      beforeEach(() => {
        fake.program.sendsEventTokens = sendsEventTokens;
      });

      it('knows the requests that we decided, though no event told their end', async () => {
        fake.program.posts.holdsEvents = true;
        const { token } = await fake.program.authorize({ card, amount: 300 });
        await fake.program.increment(token, 200);
        await fake.program.increment(token, 5_000);
        await fake.program.increment(token, 100);
        await fake.program.authorize({ card, amount: 6_000 });
        fake.program.posts.events.splice(-5);
        assert.deepEqual((await operator.reconcile()).missing_here, []);
        assert.deepEqual(
          (await transactions()).map(({ amount }) => amount),
          [6_000, 5_000],
        );
      });

      it('knows the request that follows one that Lithic declined without asking, and charges each decline once', async () => {
        card.state = 'PAUSED';
        const { token } = await fake.program.authorize({ card, amount: 300 });
        card.state = 'OPEN';
        await allTaken(fake, stack);
        await fake.program.increment(token, 400);
        await fake.program.increment(token, 5_000);
        await fake.program.increment(token, 4_000);
        await allTaken(fake, stack);
        const declines = [4_000, 5_000, 300];
        assert.deepEqual(
          (await transactions()).map(({ type, amount }) => [type, amount]),
          declines.map((amount) => ['decline', amount]),
        );
        assert.deepEqual((await operator.reconcile()).missing_here, []);
        assert.equal((await transactions()).length, declines.length);
      });
    });
  }

  it('knows the declines of an authorization that had as many requests as it can have', async () => {
    fake.program.posts.holdsEvents = true;
    const { token } = await fake.program.authorize({ card, amount: 1 });
    for (let n = 2; n <= 101; n++) await fake.program.increment(token, 1);
    await fake.program.increment(token, 20);
    fake.program.posts.events.splice(-102);
    assert.deepEqual((await operator.reconcile()).missing_here, []);
    assert.deepEqual(
      (await transactions()).map(({ type, amount }) => [type, amount]),
      [
        ['decline', 20],
        ['decline', 1],
      ],
    );
  });

  it('says that nobody is asked whether cards pay, until our address is enrolled', async () => {
    fake.program.responderUrl = null;
    await operator.reconcile();
    const [item, ...others] = await operator.operate('attention', 'list');
    assert.deepEqual([item.kind, others], ['network_setup', []]);
    assert.match(item.reason, /approves by itself/);
    enrol(fake, stack);
  });

  it('is told by a worker as soon as it starts', async () => {
    fake.program.responderUrl = null;
    await stack.stopWorker();
    await stack.startWorker();
    const item = await until('it is in the list', async () => {
      const items: { kind: string; reason: string }[] = await operator.operate('attention', 'list');
      return items.find(({ kind }) => kind === 'network_setup');
    });
    assert.match(item.reason, /approves by itself/);
    enrol(fake, stack);
  });
});
