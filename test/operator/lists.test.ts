import assert from 'node:assert/strict';
import { createCard } from '../support/cards.ts';
import { seedDeposit } from '../support/deposits/seed-deposits.ts';
import { fundedPartner } from '../support/money.ts';
import { environmentOf, type Operate, operateIn } from '../support/operator/operate.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../support/stack.ts';
import { transfer } from '../support/transfers.ts';
import { seedEvents } from '../support/webhooks/events.ts';

const HOUR_MS = 3_600_000;
const NOBODY = 'prt_01k0000000000000000000000a';

/** What one account has, of each kind the newest first. */
interface Made {
  partner: TestPartner;
  card: string;
  externalRef: string;
  key: string;
  endpoint: string;
  cards: string[];
  topUps: string[];
  withdrawals: string[];
  transactions: string[];
  operations: string[];
  deposits: string[];
  events: string[];
  eventsOfCard: string[];
  requests: string[];
}

type Args = (made: Made) => readonly string[];

interface List {
  name: string;
  args: Args;
  has(made: Made): readonly string[];
  /** What is listed by its own id, unless it is listed by another. */
  by?: 'id' | 'request_id';
  isPaged: boolean;
  narrowed?: readonly (readonly [Args, (made: Made) => readonly string[]])[];
}

const first = (ids: readonly string[]) => ids.slice(0, 1);

const ofPartner: Args = ({ partner }) => ['--partner', partner.id];
const ofCard: Args = ({ card }) => ['--card', card];

const LISTS: readonly List[] = [
  {
    name: 'card list',
    args: ofPartner,
    has: ({ cards }) => cards,
    isPaged: true,
    narrowed: [
      [() => ['--status', 'active'], ({ cards }) => cards.slice(1)],
      [() => ['--status', 'blocked'], ({ cards }) => first(cards)],
      [({ externalRef }) => ['--external-ref', externalRef], ({ cards }) => first(cards)],
      [({ externalRef }) => ['--external-ref', externalRef, '--status', 'active'], () => []],
    ],
  },
  { name: 'topup list', args: ofPartner, has: ({ topUps }) => topUps, isPaged: true },
  { name: 'topup list', args: ofCard, has: ({ topUps }) => topUps.slice(1), isPaged: true },
  { name: 'withdrawal list', args: ofPartner, has: ({ withdrawals }) => withdrawals, isPaged: true },
  { name: 'withdrawal list', args: ofCard, has: ({ withdrawals }) => withdrawals.slice(1), isPaged: true },
  {
    name: 'transaction list',
    args: ofPartner,
    has: ({ transactions }) => transactions,
    isPaged: true,
    narrowed: [
      [() => ['--since', '1h'], ({ transactions }) => transactions],
      [() => ['--since', '3000-01-01'], () => []],
    ],
  },
  { name: 'transaction list', args: ofCard, has: ({ transactions }) => transactions.slice(1), isPaged: true },
  {
    name: 'operation list',
    args: ofPartner,
    has: ({ operations }) => operations,
    isPaged: true,
    narrowed: [
      [() => ['--mode', 'test', '--status', 'completed'], ({ operations }) => operations],
      [() => ['--mode', 'live'], () => []],
      [() => ['--status', 'awaiting_review'], () => []],
    ],
  },
  {
    name: 'deposit list',
    args: ofPartner,
    has: ({ deposits }) => deposits,
    isPaged: false,
    narrowed: [
      [() => ['--status', 'needs_review'], ({ deposits }) => first(deposits)],
      [() => ['--status', 'expired'], () => []],
    ],
  },
  {
    name: 'webhook list',
    args: ({ partner }) => ['--partner', partner.id, '--status', 'given_up'],
    has: ({ events }) => events,
    isPaged: false,
    narrowed: [
      [() => ['--since', '2h'], ({ events }) => events.slice(0, 2)],
      [({ endpoint }) => ['--endpoint', endpoint], ({ events }) => events],
      [() => ['--endpoint', 'we_none'], () => []],
      [() => ['--type', 'ping'], () => []],
    ],
  },
  {
    name: 'webhook list',
    args: ofCard,
    has: ({ eventsOfCard }) => eventsOfCard,
    isPaged: false,
    narrowed: [
      [() => ['--type', 'card.issued'], ({ eventsOfCard }) => eventsOfCard.slice(-1)],
      [() => ['--type', 'card.issued', '--status', 'given_up'], () => []],
      [({ partner }) => ['--partner', partner.id, '--since', '1h'], ({ eventsOfCard }) => eventsOfCard],
      [() => ['--since', '3000-01-01'], () => []],
    ],
  },
  {
    name: 'request find',
    args: ({ key }) => ['--key', key],
    has: ({ requests }) => requests,
    by: 'request_id',
    isPaged: true,
    narrowed: [
      [() => ['--since', '1h'], ({ requests }) => requests],
      [() => ['--since', '3000-01-01'], () => []],
    ],
  },
];

describe("the operator's lists", () => {
  let stack: TestStack;
  let operate: Operate;
  let made: Made;
  before(async () => {
    stack = await sharedStack('api');
    operate = operateIn(environmentOf(stack.config));
    made = await makeThings(stack, operate);
    // Another account has things of its own, which no list of the first one shows.
    await makeThings(stack, operate);
  });

  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the contract promises.
  async function list(name: string, ...args: string[]): Promise<{ items: any[]; err: string }> {
    const { code, json, err } = await operate(...name.split(' '), ...args);
    assert.equal(code, 0, `${args.join(' ')}: ${err}`);
    return { items: json, err };
  }

  for (const { name, args, has, by = 'id', isPaged, narrowed = [] } of LISTS) {
    const flag = args({ partner: {} } as Made)[0];

    it(`${name} ${flag} has the newest first${isPaged ? ', page by page' : ''}, and says if there are more`, async () => {
      const whose = args(made);
      const ids = async (...more: string[]) =>
        (await list(name, ...whose, ...more)).items.map((one) => one[by]);
      const expected = has(made);
      assert.ok(expected.length > 1);
      const whole = await list(name, ...whose);
      assert.deepEqual(
        whole.items.map((one) => one[by]),
        expected,
      );
      const page = await list(name, ...whose, '--limit', '1');
      assert.deepEqual(page.items, whole.items.slice(0, 1));
      assert.match(page.err, /There are more than 1: narrow the search, or raise --limit/);
      assert.equal((await list(name, ...whose, '--limit', String(expected.length))).err, '');
      if (isPaged) {
        assert.ok(page.err.includes(`--before ${page.items[0].id} shows the next ones`));
        for (const [index, { id }] of whole.items.entries())
          assert.deepEqual(await ids('--before', id), expected.slice(index + 1));
      }
      for (const [more, narrow] of narrowed) assert.deepEqual(await ids(...more(made)), narrow(made));
    });
  }

  it('have the newest of every account without --partner', async () => {
    for (const [name, flags] of [
      ['card list', ['--status', 'active']],
      ['deposit list', []],
      ['webhook list', ['--status', 'given_up']],
      ['key list', []],
    ] as const) {
      const { items } = await list(name, ...flags, '--limit', '50');
      const whose = items.map(({ partner_id }) => partner_id);
      assert.ok(whose.includes(made.partner.id), name);
      assert.ok(new Set(whose).size > 1, name);
      const newest = items.map(({ id }) => id);
      assert.deepEqual(newest, newest.toSorted().toReversed(), name);
    }
    const newest = (await list('key list', '--limit', '4')).items.map(({ id }) => id);
    const further = (await list('key list', '--limit', '2', '--before', newest[1])).items.map(({ id }) => id);
    assert.deepEqual(further, newest.slice(2));
  });

  it('say what a card, a deposit and an event is, and whose', async () => {
    const of = { partner_id: made.partner.id, partner_name: 'Test Partner' };
    const [card] = (await list('card list', '--partner', made.partner.id)).items;
    assert.deepEqual([card.partner_name, card.mode, card.funding], ['Test Partner', 'test', 3_000]);
    const [deposit] = (await list('deposit list', '--partner', made.partner.id)).items;
    const { object, status, amount, credited_amount, partner_id, partner_name } = deposit;
    assert.deepEqual(
      { object, status, amount, credited_amount, partner_id, partner_name },
      { object: 'deposit', status: 'needs_review', amount: 2_500, credited_amount: 0, ...of },
    );
    const [event] = (await list('webhook list', '--partner', made.partner.id, '--status', 'given_up')).items;
    const fields =
      'id endpoint_id object partner_id partner_name mode type status attempt_count next_attempt_at last_error created';
    assert.deepEqual(Object.keys(event), fields.split(' '));
  });

  it('refuse whom and what there is not, and say where to look', async () => {
    const { card } = made;
    const other = await stack.createPartner();
    for (const [named, ...args] of [
      ...['card', 'topup', 'withdrawal', 'transaction', 'operation', 'deposit', 'webhook'].map((noun) => [
        'partner list',
        ...[noun, 'list', '--partner', NOBODY],
      ]),
      ...['topup', 'withdrawal', 'transaction'].flatMap((noun) => [
        ['card list', noun, 'list', '--card', "x'; --"],
        ['partner list', noun, 'list', '--partner', 'é'.repeat(100)],
      ]),
      ['partner list', 'key', 'list', "x'; --"],
      ['partner list', 'request', 'find', '--idempotency-key', 'x', '--partner', NOBODY],
      ['key list', 'request', 'find', '--key', 'key_01k0000000000000000000000a'],
      ['partner list', 'ledger', 'transactions', NOBODY, '--mode', 'test'],
      ['partner list', 'ledger', 'balance', NOBODY, '--mode', 'test'],
      ['card list', 'ledger', 'transactions', other.id, '--mode', 'test', '--card', 'x'],
      ['ask for that account', 'ledger', 'transactions', other.id, '--mode', 'test', '--card', card],
    ] as [string, ...string[]][]) {
      const { code, out, err } = await operate(...args);
      assert.deepEqual([code, out], [1, ''], args.join(' '));
      assert.ok(err.includes(named), `${args.join(' ')}: ${err}`);
    }
    const { live } = made.partner.keys;
    const pasted = await operate('request', 'find', '--key', live);
    assert.equal(pasted.code, 1);
    assert.ok(!pasted.err.includes(live));
  });
});

/** Two cards, and three of everything else, most of it the first card's. */
async function makeThings(stack: TestStack, operate: Operate): Promise<Made> {
  const partner = await fundedPartner(stack);
  const answers: Answer[] = [];
  const ids = (kind: readonly Answer[]) => kind.map(({ json }) => json.id).toReversed();
  async function make(ask: () => Promise<Answer>): Promise<Answer> {
    const answer = await ask();
    assert.equal(answer.status, 201, answer.text);
    answers.push(answer);
    return answer;
  }
  const cards: Answer[] = [];
  for (const amount of [1_000, 2_000, 3_000]) cards.push(await make(() => createCard(partner, { amount })));
  const [card, other, blocked] = cards.map(({ json }) => json.id);
  const topUps: Answer[] = [];
  const withdrawals: Answer[] = [];
  const transactions: Answer[] = [];
  for (const cardId of [card, card, other]) {
    topUps.push(await make(() => transfer('topup', { partner, mode: 'test', cardId }, 700)));
    withdrawals.push(await make(() => transfer('withdrawal', { partner, mode: 'test', cardId }, 100)));
    const body = { type: 'purchase', amount: 50 };
    const path = `/test/cards/${cardId}/simulate-transaction`;
    transactions.push(await partner.call('POST', path, { body }));
  }
  const block = await partner.call('POST', `/cards/${blocked}/block`);
  assert.equal(block.status, 200, block.text);
  const keys = (await operate('key', 'list', partner.id)).json;
  const deposits = [await seedDeposit(stack, partner.id), await seedDeposit(stack, partner.id)];
  deposits.push(await seedDeposit(stack, partner.id, { status: 'needs_review' }));
  const endpoint = await partner.call('POST', '/webhook-endpoints', {
    body: { url: 'https://example.com/' },
  });
  const ofCard = await partner.call('GET', `/events?limit=100&card_id=${card}`);
  const events = await seedEvents(
    stack,
    partner,
    [0, 1, 3].map((hours) => ({ status: 'given_up', ageMs: hours * HOUR_MS + 1_000 })),
  );
  return {
    partner,
    card,
    externalRef: cards[2]?.json.external_ref,
    key: keys.find(({ mode }: { mode: string }) => mode === 'test').id,
    endpoint: endpoint.json.id,
    cards: ids(cards),
    topUps: ids(topUps),
    withdrawals: ids(withdrawals),
    transactions: ids(transactions),
    operations: answers.map(({ headers }) => headers.get('operation-id') ?? '').toReversed(),
    deposits: deposits.toReversed(),
    events,
    eventsOfCard: ofCard.json.data.map(({ id }: { id: string }) => id),
    requests: answers.map(({ headers }) => headers.get('request-id') ?? '').toReversed(),
  };
}
