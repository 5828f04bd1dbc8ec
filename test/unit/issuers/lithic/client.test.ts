import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import type Lithic from 'lithic';
import { pino } from 'pino';
import { type FakeLithic, startFakeLithic } from '../../../../dev/lithic/fake-lithic.ts';
import { makeCard } from '../../../../dev/lithic/objects.ts';
import { CardNetworkUnavailable, isReadable } from '../../../../issuers/card-network.ts';
import { createLithicClient } from '../../../../issuers/lithic/client.ts';
import { UNLIMITED } from '../../../../issuers/request-budget.ts';
import { newId } from '../../../../platform/crypto/new-id.ts';
import { toArray } from '../../../support/adapters/increase.ts';
import { readable } from '../../../support/adapters/readable.ts';
import { column } from '../../../support/column.ts';

const API_KEY = 'lithic-api-key';
const HOUR_MS = 3_600_000;

describe("Lithic's client", () => {
  let fake: FakeLithic;
  let client: ReturnType<typeof createLithicClient>;
  let isUnderWay = true;
  let turns: string[] = [];
  let clockAheadMs = 0;
  let onTurn = () => {};
  const logLines: string[] = [];

  const startClient = (cardProgramToken: string | null = null) =>
    createLithicClient({
      config: {
        apiKey: API_KEY,
        webhookSecret: '',
        asaSecret: '',
        baseUrl: fake.url,
        cardProgramToken,
        requestsPerSecond: 5,
      },
      keyLifetimeMs: 20 * HOUR_MS,
      nowMs: () => Date.now() + clockAheadMs,
      budget: {
        ...UNLIMITED,
        takeTurn: async (turn) => {
          turns.push(turn);
          onTurn();
        },
      },
      logger: pino({ level: 'trace' }, { write: (line: string) => logLines.push(line) }),
      isUnderWay: async () => isUnderWay,
    });

  beforeEach(async () => {
    fake = await startFakeLithic({ apiKey: API_KEY });
    client = startClient();
    isUnderWay = true;
    turns = [];
    clockAheadMs = 0;
    onTurn = () => {};
    logLines.length = 0;
  });
  afterEach(async () => {
    await client.close();
    await fake.stop();
  });

  const order = (token: string = newId('card'), issuerProduct: string | null = null) => ({
    token,
    productCode: 'usd',
    bin: '411111',
    amountCents: 1_000,
    cardholderName: 'Ada Lovelace',
    issuerProduct,
  });
  const issue = (token?: string) => client.issueCard(order(token));
  const cards = () => [...fake.program.cards.values()];

  async function issued() {
    const answer = await issue();
    assert.ok(answer.status === 'issued');
    return answer;
  }

  /** What an error says, to whoever looks at all of it, must not have a number, a CVV or a key. */
  async function unavailable(work: Promise<unknown>): Promise<string> {
    const error = await work.then(
      () => assert.fail('it was answered'),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof CardNetworkUnavailable, inspect(error));
    // A line of our own code can have a CVV's number.
    assertNoSecrets(inspect(error, { depth: 9 }).replace(/:\d+:\d+\)?$/gm, ''));
    return error.message;
  }

  function assertNoSecrets(text: string): void {
    for (const { pan, cvv } of cards()) {
      assert.ok(!text.includes(pan));
      assert.doesNotMatch(text, new RegExp(`\\b${cvv}\\b`));
    }
    assert.doesNotMatch(text, /lithic-api-key|Ada|Lovelace|may repeat/);
  }

  describe('issuing', () => {
    it('makes a virtual card with our id as its memo, and returns no more than we store', async () => {
      const { token } = order();
      const answer = await issue(token);
      const [card] = cards();
      assert.deepEqual([card?.memo, card?.type, card?.state], [token, 'VIRTUAL', 'OPEN']);
      assert.deepEqual(answer, {
        status: 'issued',
        networkCardId: card?.token,
        last4: card?.last_four,
        expMonth: 6,
        expYear: Number(card?.exp_year),
      });
      assert.deepEqual(turns, ['operation']);
    });

    it("passes on the product's card program, or else the configured one", async () => {
      await client.close();
      client = startClient('configured');
      await client.issueCard(order());
      await client.issueCard(order(newId('card'), 'of-the-product'));
      assert.deepEqual(column(cards(), 'card_program_token'), ['configured', 'of-the-product']);
    });

    it('asks with the same UUID whenever it asks for the same card, and so gets one card', async () => {
      const { token } = order();
      await Promise.all([issue(token), issue(token)]);
      await client.close();
      client = startClient();
      await issue(token);
      assert.equal(cards().length, 1);
      const [key, ...others] = new Set(fake.calls.map(({ key }) => key));
      assert.deepEqual(others, []);
      assert.match(key ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    });

    it('says nothing that it received in an error or in the log, whatever that was', async () => {
      const faults = [
        'lost after',
        '500 after',
        'rate limited',
        'unauthorized',
        'malformed',
        'other shape',
      ] as const;
      for (const fault of faults) {
        fake.faults.add({ fault, request: 'POST /v1/cards', times: 1 });
        await unavailable(issue());
      }
      assertNoSecrets(logLines.join('\n'));
    });

    it('is answered with a stored 500 until Lithic forgets the key, and never as a no', async () => {
      const { token } = order();
      fake.faults.add({ fault: '500 before', request: 'POST /v1/cards', times: 1 });
      await unavailable(issue(token));
      assert.match(await unavailable(issue(token)), /500/);
      assert.equal(cards().length, 0);
    });

    it('is not declined by a refusal of a repetition', async () => {
      const { token } = order();
      await issue(token);
      // Lithic has the key for another request.
      await client.close();
      client = startClient('another-program');
      const answer = await issue(token);
      assert.equal(answer.status, 'issued');
      assert.equal(cards().length, 1);
    });

    it('sends no key that has become too old while its request waited for its turn', async () => {
      onTurn = () => {
        clockAheadMs = 21 * HOUR_MS;
      };
      assert.match(await unavailable(issue()), /NETWORK_KEY_LIFETIME/);
      assert.deepEqual(fake.calls, []);
    });
  });

  describe('looking up', () => {
    it('finds exactly our memo, however many others contain it, on every page', async () => {
      const { token } = order();
      const { networkCardId } = await issued();
      const mine = fake.program.card(networkCardId);
      mine.memo = token;
      for (let n = 0; n < 230; n++) fakeCard(`${token}-${n}`);
      assert.deepEqual(await client.lookUpIssuance(token), {
        status: 'issued',
        networkCardId,
        last4: mine.last_four,
        expMonth: 6,
        expYear: Number(mine.exp_year),
      });
      mine.memo = 'renamed';
      assert.deepEqual(await client.lookUpIssuance(token), { status: 'unknown' });
    });
  });

  function fakeCard(memo: string): void {
    const card = makeCard({ memo }, fake.program.now());
    fake.program.cards.set(card.token, card);
  }

  it('needs no request for money, because only our ledger has it', async () => {
    const money = { token: newId('topup'), networkCardId: 'any', amountCents: 100 };
    const transfer = { ...money, direction: 'topup' } as const;
    const ended = { status: 'succeeded' };
    assert.deepEqual(await client.transfer(transfer), ended);
    assert.deepEqual(await client.lookUpTransfer(transfer), ended);
    for (const direction of ['to_card', 'from_card'] as const)
      assert.deepEqual(await client.trueUp({ ...money, direction }), ended);
    assert.equal(client.abilities.moneyHeldBy, 'ledger');
    assert.deepEqual(fake.calls, []);
  });

  describe('changing the status', () => {
    const change = (networkCardId: string, cardStatus: 'active' | 'frozen' | 'blocked') =>
      client.changeCardStatus({ token: newId('claim'), networkCardId, cardStatus });

    it('pauses, opens and closes the card', async () => {
      const { networkCardId } = await issued();
      const states = [];
      for (const status of ['frozen', 'active', 'blocked'] as const) {
        assert.deepEqual(await change(networkCardId, status), { status: 'applied' });
        states.push(fake.program.card(networkCardId).state);
      }
      assert.deepEqual(states, ['PAUSED', 'OPEN', 'CLOSED']);
    });

    it('is refused for a card that Lithic has closed, but a block of it is applied', async () => {
      const { networkCardId } = await issued();
      fake.program.card(networkCardId).state = 'CLOSED';
      assert.deepEqual(await change(networkCardId, 'active'), { status: 'refused', reason: 'card_closed' });
      assert.deepEqual(await change(networkCardId, 'blocked'), { status: 'applied' });
    });

    it('is not sent once another change may have followed it', async () => {
      const { networkCardId } = await issued();
      fake.calls.length = 0;
      isUnderWay = false;
      assert.match(await unavailable(change(networkCardId, 'frozen')), /not under way/);
      assert.deepEqual(fake.calls, []);
    });

    it('has no answer for a card that Lithic does not know', async () => {
      assert.match(await unavailable(change('00000000-0000-4000-8000-000000000000', 'frozen')), /404/);
    });
  });

  describe('revealing', () => {
    it('has no answer if Lithic shows us no numbers, as before the approval for PCI', async () => {
      const { networkCardId } = await issued();
      const card = fake.program.card(networkCardId);
      fake.program.cards.set(networkCardId, { ...card, pan: undefined as never, cvv: undefined as never });
      const failed = client.revealCard({ cardId: 'card_1', networkCardId }).catch((error) => error.message);
      assert.match(await failed, /unexpected shape \(pan, cvv\)/);
    });
  });

  describe('lists', () => {
    it('have every card since then, oldest first, on however many pages', async () => {
      for (let n = 0; n < 105; n++) fakeCard(n === 3 ? newId('card') : `another ${n}`);
      const all = cards();
      all.forEach((card, n) => {
        card.created = new Date(Date.now() - 3 * HOUR_MS + n * 60_000).toISOString();
      });
      (all[4] as (typeof all)[number]).state = 'CLOSED';
      const since = new Date(Date.parse(all[2]?.created ?? ''));
      const listed = await toArray(readable(client.listCards(since)));
      assert.deepEqual(
        column(listed, 'networkCardId'),
        all.slice(2).map(({ token }) => token),
      );
      assert.deepEqual(listed[1]?.token, all[3]?.memo);
      assert.deepEqual([listed[0]?.token, listed[2]?.status], [null, 'blocked']);
    });

    it('have every transaction as a payment', async () => {
      const { networkCardId } = await issued();
      const card = fake.program.card(networkCardId);
      const transaction = await fake.program.authorize({ card, amount: 700 });
      fake.program.record(transaction, { type: 'CLEARING', amount: 700 });
      const payments = await toArray(readable(client.listPayments(new Date(Date.now() - HOUR_MS))));
      const listed = payments.map(({ paymentId, movements }) => [
        paymentId,
        column(movements, 'amountCents'),
      ]);
      assert.deepEqual(listed, [[transaction.token, [700]]]);
      assert.equal(turns.at(-1), 'reconciliation');
    });

    it('try a page three times, so that a reconciliation need not begin again', async () => {
      const { networkCardId } = await issued();
      const list = async () =>
        column(await toArray(readable(client.listCards(new Date(Date.now() - 60_000)))), 'networkCardId');
      fake.faults.add({ fault: '500 before', request: 'GET /v1/cards', times: 1 });
      fake.faults.add({ fault: 'rate limited', request: 'GET /v1/cards', times: 1 });
      assert.deepEqual(await list(), [networkCardId]);
      fake.faults.add({ fault: '500 before', request: 'GET /v1/cards', times: 3 });
      assert.match(await unavailable(list()), /500/);
    });
  });

  it('reads a transaction by its token, or has none', async () => {
    const { networkCardId } = await issued();
    const { token } = await fake.program.authorize({ card: fake.program.card(networkCardId), amount: 700 });
    const read = await client.readPayment(token, 'event');
    assert.ok(read !== null && isReadable(read));
    assert.deepEqual([read.paymentId, read.heldCents], [token, 700]);
    assert.equal(await client.readPayment(randomUUID(), 'event'), null);
  });

  describe('the check of the set-up', () => {
    const OURS = 'https://cards.example/behind/a/prefix/network/lithic/authorizations';
    const subscribe = (more: Partial<Lithic.EventSubscription> = {}) => {
      fake.program.subscriptions = [
        {
          token: 'subscription',
          description: '',
          disabled: false,
          url: 'https://cards.example/behind/a/prefix/network/lithic/events',
          ...more,
        },
      ];
    };
    beforeEach(() => {
      fake.program.responderUrl = OURS;
      subscribe();
    });
    const problems = async () => (await client.checkSetUp()).join('\n');

    for (const [what, responderUrl, problem] of [
      ['nothing if our address is enrolled and subscribed', OURS, /^$/],
      ['that nobody is asked', null, /approves by itself/],
      [
        'that another path than ours is asked',
        'https://cards.example/another/path',
        /another address than ours/,
      ],
      [
        'that one host is asked and another one told',
        'https://old.example/network/lithic/authorizations',
        /asks old\.example .* its events to cards\.example/,
      ],
    ] as const) {
      it(`finds ${what}`, async () => {
        fake.program.responderUrl = responderUrl;
        assert.match(await problems(), problem);
      });
    }

    for (const [what, more] of [
      ['there is no subscription to our path', { url: 'https://cards.example/another/path' }],
      ['the subscription is disabled', { disabled: true }],
      ['the subscription is for other events', { event_types: ['card.created'] }],
    ] satisfies [string, Partial<Lithic.EventSubscription>][]) {
      it(`finds that we are not told what cards did, beside what else is wrong: ${what}`, async () => {
        subscribe(more);
        fake.program.responderUrl = null;
        assert.match(
          await problems(),
          /approves by itself.*\n.*no active event subscription to \/network\/lithic\/events/,
        );
      });
    }
  });
});
