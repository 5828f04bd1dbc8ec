import assert from 'node:assert/strict';
import type { FakeLithic } from '../../../dev/lithic/fake-lithic.ts';
import { type Card, makeCard } from '../../../dev/lithic/objects.ts';
import { API_KEY, allTaken, enrol, lithicCard, startLithicStack } from '../../support/adapters/lithic.ts';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { reconciler } from '../../support/operator/reconcile.ts';
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

  async function purchase(amount: number) {
    const transaction = await fake.program.authorize({ card, amount });
    fake.program.record(transaction, { type: 'CLEARING', amount });
    await allTaken(fake, stack);
    return transaction;
  }

  it('finds nothing where both agree', async () => {
    await purchase(300);
    await fake.program.authorize({ card, amount: 5_000 });
    await allTaken(fake, stack);
    // The card and two payments.
    assert.deepEqual(await operator.reconcile(), { ...NOTHING, matched: 3 });
  });

  it('finds a card that was made there by hand, until it is gone', async () => {
    const byHand = makeCard({ memo: 'by hand' }, new Date());
    fake.program.cards.set(byHand.token, byHand);
    const found = await operator.reconcile();
    assert.deepEqual(found.missing_here, [{ kind: 'card', id: null, issuer_id: byHand.token }]);
    assert.deepEqual([found.missing_at_issuer, found.different], [[], []]);
    assert.match(await reasons(), /the issuer has a card, active, that we don't know/);
    fake.program.cards.delete(byHand.token);
  });

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

  it('finds a card that Lithic does not have', async () => {
    fake.program.cards.delete(card.token);
    const found = await operator.reconcile();
    assert.deepEqual(found.missing_at_issuer, [{ kind: 'card', id: cardId, issuer_id: card.token }]);
    assert.deepEqual([found.missing_here, found.different], [[], []]);
    fake.program.cards.set(card.token, card);
  });

  it('finds a card with another status', async () => {
    card.state = 'PAUSED';
    const found = await operator.reconcile();
    assert.deepEqual(found.different, [{ kind: 'card', id: cardId, issuer_id: card.token }]);
    assert.match(await reasons(), /the card is active here and frozen at the issuer/);
    card.state = 'OPEN';
  });

  it('books what was never told, once, and in its order', async () => {
    fake.program.posts.holdsEvents = true;
    const transaction = await fake.program.authorize({ card, amount: 300 });
    fake.program.record(transaction, { type: 'CLEARING', amount: 200 });
    const back = fake.program.begin(card, {}, { type: 'RETURN', amount: 50, polarity: 'CREDIT' });
    const unsent = fake.program.posts.events.splice(-3);
    const found = await operator.reconcile();
    const booked = await transactions();
    assert.deepEqual(
      booked.map(({ type, amount }) => [type, amount]),
      [
        ['refund', 50],
        ['purchase', 200],
      ],
    );
    // We decided about the authorization, so it was no news.
    assert.deepEqual(
      found.missing_here.map(({ id, issuer_id }: { id: string; issuer_id: string }) => [id, issuer_id]),
      [
        [booked[1]?.id, transaction.events[1]?.token],
        [booked[0]?.id, back.events[0]?.token],
      ],
    );
    assert.deepEqual(await operator.differences(), []);
    // Lithic sends them after all.
    for (const event of unsent) assert.equal(await fake.program.posts.send(event), 200);
    fake.program.posts.events.push(...unsent);
    await allTaken(fake, stack);
    assert.equal((await transactions()).length, 2);
  });

  it('finds a clearing with another amount, and one that Lithic does not have', async () => {
    const [changed, removed] = [await purchase(300), await purchase(200)];
    const clearing = changed.events[1];
    assert.ok(clearing);
    const [small, large] = await transactions();
    const amounts = structuredClone(clearing.amounts);
    for (const one of Object.values(clearing.amounts)) if (one !== null) one.amount = 350;
    fake.program.transactions.delete(removed.token);
    const found = await operator.reconcile();
    assert.deepEqual(found.different, [{ kind: 'transaction', id: large?.id, issuer_id: clearing.token }]);
    assert.deepEqual(found.missing_here, []);
    assert.deepEqual(found.missing_at_issuer[0], {
      kind: 'transaction',
      id: small?.id,
      issuer_id: removed.events[1]?.token,
    });
    assert.deepEqual(
      [found.missing_at_issuer.length, found.missing_at_issuer[1]?.issuer_id],
      [2, removed.token],
    );
    assert.match(await reasons(), /purchase of 300 cents here; purchase of 350 cents at the issuer/);
    clearing.amounts = amounts;
    fake.program.transactions.set(removed.token, removed);
  });

  describe('on what began before the period', () => {
    const DAY_MS = 86_400_000;

    /** An authorization that is older than every period here, and still open. */
    async function oldAuthorization(amount: number) {
      fake.program.advance(-6 * DAY_MS);
      const transaction = await fake.program.authorize({ card, amount });
      fake.program.advance(6 * DAY_MS);
      await allTaken(fake, stack);
      return transaction;
    }

    it('misses nothing if Lithic has it in a transaction that it lists no more', async () => {
      const transaction = await oldAuthorization(300);
      fake.program.record(transaction, { type: 'CLEARING', amount: 300 });
      fake.program.record(transaction, { type: 'RETURN', amount: 100, polarity: 'CREDIT' });
      await allTaken(fake, stack);
      assert.equal((await transactions()).length, 2);
      const { matched: _, ...differences } = await operator.reconcile();
      assert.deepEqual(differences, NOTHING);
    });

    it('books the lost clearing of an authorization that is pending here, and compares an amount', async () => {
      const transaction = await oldAuthorization(300);
      fake.program.posts.holdsEvents = true;
      fake.program.record(transaction, { type: 'CLEARING', amount: 200 });
      fake.program.posts.events.splice(-1);
      const since = new Date().toISOString();
      const found = await operator.reconcile(since);
      const [booked] = await transactions();
      assert.deepEqual([booked?.type, booked?.amount], ['purchase', 200]);
      const [authorization, clearing] = transaction.events;
      assert.ok(authorization && clearing);
      assert.deepEqual(found.missing_here, [
        { kind: 'transaction', id: booked?.id, issuer_id: clearing.token, corrected: true },
      ]);
      assert.deepEqual((await operator.reconcile(since)).missing_here, []);
      // It is not pending any more. What is open about it is looked at until it is right.
      const amounts = structuredClone(clearing.amounts);
      for (const one of Object.values(clearing.amounts)) if (one !== null) one.amount = 250;
      const different = [{ kind: 'transaction', id: booked?.id, issuer_id: clearing.token }];
      transaction.created = new Date().toISOString();
      assert.deepEqual((await operator.reconcile(since)).different, different);
      transaction.created = authorization.created;
      assert.deepEqual((await operator.reconcile(since)).different, different);
      clearing.amounts = amounts;
      assert.deepEqual((await operator.reconcile(since)).different, []);
    });
  });

  it('compares all others if it can not read some, and says which', async () => {
    const read = await purchase(300);
    const [unread, removed] = [await purchase(200), await purchase(100)];
    const other = await lithicCard(fake, stack, (await createCard(partner, { amount: 1_000 }, live)).json.id);
    const { updated } = unread;
    unread.updated = 'yesterday';
    card.state = 'LOST' as 'OPEN';
    other.state = 'PAUSED';
    fake.program.transactions.delete(removed.token);
    const found = await operator.reconcile();
    assert.deepEqual(
      found.different.map(({ kind, issuer_id }: { kind: string; issuer_id: string }) => [kind, issuer_id]),
      [
        ['card', other.token],
        ['card', card.token],
        ['transaction', unread.token],
      ],
    );
    assert.deepEqual(
      found.missing_at_issuer.map(({ issuer_id }: { issuer_id: string }) => issuer_id),
      [removed.events[1]?.token, removed.token],
    );
    assert.match(await reasons(), /can't read .*\(updated\)/);
    assert.ok(read.events.length > 0);
    unread.updated = updated;
    card.state = 'OPEN';
    other.state = 'OPEN';
    fake.program.transactions.set(removed.token, removed);
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

  it('asks again for a page that fails, and ends nothing if Lithic stays away', async () => {
    card.state = 'PAUSED';
    fake.faults.add({ fault: '500 before', call: 'GET /v1/cards' });
    fake.faults.add({ fault: 'rate limited', call: 'GET /v1/cards' });
    fake.faults.add({ fault: 'lost after', call: 'GET /v1/transactions', times: 2 });
    assert.equal((await operator.reconcile()).different.length, 1);
    const items = await operator.differences();
    card.state = 'OPEN';
    fake.faults.add({ fault: '500 before', call: 'GET /v1/transactions', times: 3 });
    await assert.rejects(operator.reconcile(), /Lithic: it answered 500/);
    fake.faults.clear();
    assert.deepEqual(await operator.differences(), items);
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
