import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { cardIn } from '../support/card-status.ts';
import { eventTypes } from '../support/cards.ts';
import { askUntilEnd, END_TITLES, ENDS, type End } from '../support/crash/ask-until-end.ts';
import { scratchFolder } from '../support/crash/processes.ts';
import { inParallel } from '../support/in-parallel.ts';
import { assertBalance, assertLedgerClean, balanceOfCard, fundedPartner, priceOf } from '../support/money.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';

const CARD_CENTS = 10_000;

/** What test mode is asked for, and what it leaves. */
const OPERATIONS = {
  issue: { of: null, verb: '', event: 'card.issued', loaded: CARD_CENTS },
  'top up': { of: 'active', verb: 'topups', event: 'topup.succeeded', loaded: 2 * CARD_CENTS },
  withdraw: { of: 'active', verb: 'withdrawals', event: 'withdrawal.succeeded', loaded: 6_000 },
  freeze: { of: 'active', verb: 'freeze', event: 'card.frozen', loaded: CARD_CENTS },
  unfreeze: { of: 'frozen', verb: 'unfreeze', event: 'card.unfrozen', loaded: CARD_CENTS },
  block: { of: 'active', verb: 'block', event: 'card.blocked', loaded: 0 },
} as const;
type Name = keyof typeof OPERATIONS;

describe('a request in test mode', function () {
  this.timeout(240_000);
  let stack: TestStack;
  let folder: string;
  let ends: Promise<void>[];
  const runs = (Object.keys(OPERATIONS) as Name[]).flatMap((name) =>
    (Object.keys(ENDS) as End[]).map((end) => [name, end] as const),
  );
  before(async () => {
    folder = scratchFolder();
    // No worker: there is nothing for it to do.
    stack = await startTestStack({ logLevel: 'error' }, { worker: false });
    ends = inParallel(
      4,
      runs.map(
        ([name, end]) =>
          () =>
            run(name, end),
      ),
    );
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  runs.forEach(([name, end], index) => {
    it(`to ${name} a card has one effect, whose answer a retry gets, when ${END_TITLES[end]}`, () =>
      ends[index]);
  });

  async function run(name: Name, end: End): Promise<void> {
    const { of, verb, event, loaded } = OPERATIONS[name];
    const partner = await fundedPartner(stack);
    const cardId = of && (await cardIn(stack, partner, 'test', of));
    const before = cardId === null ? [] : await eventTypes(stack, cardId);
    const path = cardId === null ? '/cards' : `/cards/${cardId}/${verb}`;
    const body =
      name === 'issue'
        ? { amount: CARD_CENTS, external_ref: randomUUID() }
        : name === 'top up'
          ? { amount: CARD_CENTS }
          : name === 'withdraw'
            ? { amount: 4_000 }
            : {};
    const idempotencyKey = randomUUID();
    await askUntilEnd(stack.config, folder, end, { mode: 'test', partner, path, body, key: idempotencyKey });

    const retry = await partner.call('POST', path, { body, idempotencyKey });
    assert.equal(retry.status, ['', 'topups', 'withdrawals'].includes(verb) ? 201 : 200, retry.text);
    assert.equal(retry.headers.get('idempotent-replayed') === 'true', ENDS[end]);
    const again = await partner.call('POST', path, { body, idempotencyKey });
    assert.deepEqual([again.status, again.text], [retry.status, retry.text]);

    const id: string = cardId ?? retry.json.id;
    assert.deepEqual(await eventTypes(stack, id), [...before, event]);
    assert.equal(await balanceOfCard(stack.orm.em.fork(), id), loaded);
    const cards = await partner.call('GET', '/cards');
    assert.deepEqual(
      cards.json.data.map((card: { id: string; balance: number }) => [card.id, card.balance]),
      [[id, loaded]],
    );
    const topUps = name === 'top up' ? [retry.json] : [];
    assert.deepEqual((await partner.call('GET', `/cards/${id}/topups`)).json.data, topUps);
    const withdrawals = name === 'withdraw' ? [retry.json] : [];
    assert.deepEqual((await partner.call('GET', `/cards/${id}/withdrawals`)).json.data, withdrawals);
    const spentCents =
      priceOf(CARD_CENTS) +
      (name === 'top up' ? priceOf(CARD_CENTS, 'card_topup') : 0) -
      (name === 'block' ? CARD_CENTS : 0) -
      (name === 'withdraw' ? 4_000 : 0);
    await assertBalance(stack, partner, 'test', { spentCents, heldCents: 0 });
  }
});
