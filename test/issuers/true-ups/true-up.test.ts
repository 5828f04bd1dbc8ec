import assert from 'node:assert/strict';
import { checkBooks } from '../../../exports/check-books.ts';
import type { CardNetwork, TrueUpAnswer, TrueUpAsked } from '../../../issuers/card-network.ts';
import { CardNetworkUnavailable } from '../../../issuers/card-network.ts';
import { takeDueTrueUps } from '../../../issuers/true-ups/true-ups.ts';
import { networkIdOf, networkTransaction, sendAsNetwork } from '../../support/api/network-events.ts';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { environmentOf, operateIn } from '../../support/operator/operate.ts';
import { reconciler } from '../../support/operator/reconcile.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;

describe("a blocked card's money at the network", () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  let asked: TrueUpAsked[];
  let answer: (asked: TrueUpAsked) => Promise<TrueUpAnswer>;
  /** What the network has moved, by token. */
  let moved: Map<string, number>;
  const around = {
    activities: <Same>(same: Same) => same,
    network: (network: CardNetwork): CardNetwork => ({
      ...network,
      trueUp: (request) => {
        asked.push(request);
        return answer(request);
      },
    }),
  };
  const succeed = async ({ token, amountCents }: TrueUpAsked): Promise<TrueUpAnswer> => {
    moved.set(token, amountCents);
    return { status: 'succeeded' };
  };

  before(async () => {
    stack = await startTestStack({}, { worker: false });
    await stack.startWorker({ around });
    partner = await fundedPartner(stack, 100_000);
  });
  beforeEach(async () => {
    asked = [];
    moved = new Map();
    answer = succeed;
    cardId = (await createCard(partner, { amount: 1_000 }, live)).json.id;
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  const block = async () => {
    assert.equal((await partner.call('POST', `/cards/${cardId}/block`, live)).status, 200);
  };
  /** The network reports a refund, or a clearing without an authorization. */
  const report = async (type: 'refund' | 'clearing', amountCents: number) => {
    const said = { type, amountCents, ...(type === 'clearing' && { networkAuthorizationId: null }) };
    const body = networkTransaction(await networkIdOf(stack, cardId), said);
    assert.equal((await sendAsNetwork(stack, '/network/transactions', JSON.stringify(body))).status, 200);
  };
  const trueUps = () =>
    asOwner<{ id: string; token: string; status: string; amount_cents: string; reason: string | null }>(
      stack,
      'SELECT id, token, status, amount_cents, reason FROM true_up WHERE card_id = $1 ORDER BY id',
      [cardId],
    );
  const allAre = (status: string) =>
    until(`all are ${status}`, async () => {
      const rows = await trueUps();
      return rows.length > 0 && rows.every((row) => row.status === status);
    });
  const makeDue = () =>
    asOwner(stack, "UPDATE true_up SET retry_after = '-infinity' WHERE card_id = $1", [cardId]);
  const movedCents = () => [...moved.values()];

  it('is returned when the card is blocked, and later what becomes free', async () => {
    const networkCardId = await networkIdOf(stack, cardId);
    const send = (path: string, more: object) => {
      const body = networkTransaction(networkCardId, { networkAuthorizationId: 'A-return', ...more });
      return sendAsNetwork(stack, path, JSON.stringify(body));
    };
    const { json } = await send('/network/authorizations', { type: 'authorization', amountCents: 300 });
    assert.equal(json.approved, true);
    await block();
    await allAre('succeeded');
    assert.deepEqual(movedCents(), [700]);
    await send('/network/transactions', { type: 'reversal', amountCents: 100 });
    await until('it is returned', () => moved.size === 2);
    await send('/network/transactions', { type: 'expiry', amountCents: null });
    await until('the rest is returned', () => moved.size === 3);
    await allAre('succeeded');
    assert.deepEqual(movedCents(), [700, 100, 200]);
    assert.deepEqual(new Set(asked.map((one) => one.networkCardId)), new Set([networkCardId]));
    for (const { token } of asked) assert.match(token, /^tru_[0-9a-z]{26}$/);
  });

  it('is asked for with the same token until it has been returned', async () => {
    let attempts = 0;
    answer = async (request) => {
      attempts += 1;
      if (attempts === 1) throw new CardNetworkUnavailable('no answer');
      const done = await succeed(request);
      if (attempts === 2) throw new CardNetworkUnavailable('the answer is lost');
      return attempts === 3 ? { status: 'accepted' } : done;
    };
    await block();
    await until('it is returned', async () => {
      await makeDue();
      return (await trueUps())[0]?.status === 'succeeded';
    });
    assert.equal(new Set(asked.map(({ token }) => token)).size, 1);
    assert.deepEqual(movedCents(), [1_000]);
  });

  for (const { what, direction, cents, begin } of [
    { what: 'returned', direction: 'from_card', cents: 1_000, begin: () => block() },
    // The prepaid balance pays what the card lacks.
    { what: 'covered', direction: 'to_card', cents: 250, begin: () => report('clearing', 1_250) },
  ] as const) {
    it(`that the network refuses is ${what} under another token once an operator has it asked for again`, async () => {
      answer = async () => ({ status: 'refused', reason: 'account_closed' });
      await begin();
      await allAre('refused');
      const operate = operateIn(environmentOf(stack.config));
      const attention = async () =>
        (await operate('attention', 'list')).json.filter(({ kind }: { kind: string }) => kind === 'true_up');
      const [row] = await trueUps();
      const [item] = await attention();
      assert.equal(item.id, row?.id);
      assert.match(item.reason, new RegExp(`^${cents} cents .* refused to move them \\(account_closed\\)`));
      assert.match(
        item.at_issuer,
        new RegExp(`^at the issuer: ${cents} cents, token ${row?.token}, card \\S+$`),
      );
      const refused = ['true-up', 'list', '--status', 'refused'];
      const [listed] = (await operate(...refused)).json;
      assert.deepEqual([listed.id, listed.direction, listed.amount], [row?.id, direction, cents]);
      const other = direction === 'to_card' ? 'from_card' : 'to_card';
      assert.deepEqual((await operate(...refused, '--direction', other)).json, []);
      assert.equal((await operate('true-up', 'retry', 'ret_1', '--reason', 'no true-up')).code, 2);
      answer = succeed;
      const { json } = await operate('true-up', 'retry', row?.id ?? '', '--reason', 'open again');
      assert.match(json.token, /^tru_[0-9a-z]{26}$/);
      assert.notEqual(json.token, row?.token);
      await allAre('succeeded');
      assert.deepEqual([...moved], [[json.token, cents]]);
      assert.deepEqual(await attention(), []);
      assert.equal((await operate('true-up', 'dismiss', row?.id ?? '', '--reason', 'late')).code, 1);
    });
  }

  it('is asked for again with the same token if an operator retries it while a worker is asking', async () => {
    const { promise: isAnswered, resolve: answerFirst } = Promise.withResolvers<void>();
    answer = async (request) => {
      if (asked.length === 1) await isAnswered;
      return succeed(request);
    };
    await block();
    await until('a worker asks', () => asked.length === 1);
    const [row] = await trueUps();
    const operate = operateIn(environmentOf(stack.config));
    const { json } = await operate('true-up', 'retry', row?.id ?? '', '--reason', 'no transfer yet');
    assert.deepEqual([json.token, json.status], [row?.token, 'pending']);
    answerFirst();
    await allAre('succeeded');
    assert.deepEqual([...moved], [[row?.token, 1_000]]);
  });

  it('needs a person after an hour without an answer, who can dismiss it', async () => {
    answer = async () => {
      throw new CardNetworkUnavailable('no answer');
    };
    await block();
    await until('it was asked', () => asked.length > 0);
    await asOwner(stack, "UPDATE true_up SET created_at = now() - interval '61 minutes' WHERE card_id = $1", [
      cardId,
    ]);
    const operate = operateIn(environmentOf(stack.config));
    const listed = (await operate('true-up', 'list')).json;
    assert.equal(listed[0].card_id, cardId);
    const items = (await operate('attention', 'list')).json;
    assert.equal(items.filter(({ kind }: { kind: string }) => kind === 'true_up').length, 1);
    const { json } = await operate('true-up', 'dismiss', listed[0].id, '--reason', 'by hand');
    assert.equal(json.status, 'dismissed');
  });

  it('is not missed by a comparison with the simulated network, which moves nothing', async () => {
    await block();
    await allAre('succeeded');
    const { missing_at_issuer: missing } = await reconciler(stack, {}).reconcile();
    const [row] = await trueUps();
    assert.ok(!missing.some(({ id }: { id: string }) => id === row?.id));
  });

  it('waits for no other account, and what goes to a card comes first', async () => {
    const other = await fundedPartner(stack, 100_000);
    const issue = async (of: TestPartner): Promise<string> =>
      (await createCard(of, { amount: 1_000 }, live)).json.id;
    const [topped, others] = [await issue(partner), await issue(other)];
    await stack.stopWorker();
    const insert = (name: string, of: TestPartner, card: string, direction: string, count = 1) =>
      asOwner(
        stack,
        `INSERT INTO true_up (id, direction, transfer_id, operation_id, partner_id, mode, card_id, amount_cents, token)
         SELECT $1 || n, $2, gen_random_uuid(), '', $3, 'live', $4, 1, $1 || n FROM generate_series(1, $5) n`,
        [name, direction, of.id, card, count],
      );
    await insert('many', partner, cardId, 'from_card', 9);
    await insert('waits', partner, topped, 'from_card');
    await insert('to', partner, topped, 'to_card');
    await insert('return', other, others, 'from_card');
    await insert('cover', other, others, 'to_card');
    const taken: string[][] = [];
    for (const limit of [2, 3, 20])
      taken.push((await takeDueTrueUps(stack.orm, { limit })).map(({ id }) => id).sort());
    assert.deepEqual(taken, [
      ['cover1', 'to1'],
      ['many1', 'many2', 'many3'],
      ['many4', 'many5', 'many6', 'many7', 'many8', 'many9'],
    ]);
    await asOwner(stack, "DELETE FROM true_up WHERE operation_id = ''");
    await stack.startWorker({ around });
  });

  it('is compared with what the ledger moved by the check of the books', async () => {
    await block();
    await allAre('succeeded');
    const check = async () => (await checkBooks(stack.orm.em.fork())).map(({ message }) => message);
    assert.deepEqual(await check(), []);
    for (const [code, direction, cents, type] of [
      ['block_release', 'from_card', 1_000, null],
      ['late_refund', 'from_card', 250, 'refund'],
      ['late_debit', 'to_card', 350, 'clearing'],
    ] as const) {
      if (type !== null) await report(type, cents);
      const row = (await trueUps()).find(({ amount_cents }) => amount_cents === String(cents));
      const set = (amountCents: number) =>
        asOwner(stack, 'UPDATE true_up SET amount_cents = $2 WHERE id = $1', [row?.id, amountCents]);
      await set(cents + 1);
      assert.deepEqual(await check(), [
        `its ${code} of ${cents} has a true-up of ${cents + 1}, ${direction}`,
      ]);
      await set(cents);
    }
  });
});
