import assert from 'node:assert/strict';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkBooks } from '../../../commands/monitoring/check-books.ts';
import type { CardNetwork, ReturnAnswer, ReturnAsked } from '../../../domain/card-network.ts';
import { CardNetworkUnavailable } from '../../../domain/card-network.ts';
import { networkIdOf, networkTransaction, sendAsNetwork } from '../../support/api/network-events.ts';
import { createCard } from '../../support/cards.ts';
import type { DeadlyStatement } from '../../support/crash/die-at-statement.ts';
import { bundleFile, kill, scratchFolder, startProcess } from '../../support/crash/processes.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { environmentOf, operateIn } from '../../support/operator/operate.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;

describe("a blocked card's money at the network", function () {
  this.timeout(120_000);
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  let asked: ReturnAsked[];
  let answer: (asked: ReturnAsked) => Promise<ReturnAnswer>;
  /** What the network has moved, by token. */
  let moved: Map<string, number>;
  const around = {
    activities: <Same>(same: Same) => same,
    network: (network: CardNetwork): CardNetwork => ({
      ...network,
      returnMoney: (request) => {
        asked.push(request);
        return answer(request);
      },
    }),
  };
  const succeed = async ({ token, amountCents }: ReturnAsked): Promise<ReturnAnswer> => {
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
  const returns = () =>
    asOwner<{ id: string; token: string; status: string; amount_cents: string; reason: string | null }>(
      stack,
      'SELECT id, token, status, amount_cents, reason FROM money_return WHERE card_id = $1 ORDER BY id',
      [cardId],
    );
  const allAre = (status: string) =>
    until(`all are ${status}`, async () => {
      const rows = await returns();
      return rows.length > 0 && rows.every((row) => row.status === status);
    });
  const makeDue = () =>
    asOwner(stack, "UPDATE money_return SET retry_after = '-infinity' WHERE card_id = $1", [cardId]);
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
    for (const { token } of asked) assert.match(token, /^ret_[0-9a-z]{26}$/);
  });

  it('is returned, too, when a refund reaches the card after its block, once however often it is reported', async () => {
    const networkCardId = await networkIdOf(stack, cardId);
    await block();
    await allAre('succeeded');
    const refund = JSON.stringify(networkTransaction(networkCardId, { type: 'refund', amountCents: 250 }));
    for (let sent = 0; sent < 2; sent++) {
      assert.equal((await sendAsNetwork(stack, '/network/transactions', refund)).status, 200);
    }
    await until('the refund is returned', () => moved.size === 2);
    await allAre('succeeded');
    assert.deepEqual(movedCents(), [1_000, 250]);
    assert.deepEqual(await checkBooks(stack.orm.em.fork()), []);
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
      return (await returns())[0]?.status === 'succeeded';
    });
    assert.equal(new Set(asked.map(({ token }) => token)).size, 1);
    assert.deepEqual(movedCents(), [1_000]);
  });

  it('that the network refuses to return waits for an operator, who has it asked for again, or dismisses it', async () => {
    answer = async () => ({ status: 'refused', reason: 'account_closed' });
    await block();
    await allAre('refused');
    const operate = operateIn(environmentOf(stack.config));
    const attention = async () =>
      (await operate('attention', 'list')).json.filter(
        ({ kind }: { kind: string }) => kind === 'money_return',
      );
    const [row] = await returns();
    const [item] = await attention();
    assert.deepEqual([item.id, /account_closed/.test(item.reason)], [row?.id, true]);
    answer = succeed;
    const { json } = await operate('money-return', 'retry', row?.id ?? '', '--reason', 'open again');
    assert.notEqual(json.token, row?.token);
    await allAre('succeeded');
    assert.deepEqual(movedCents(), [1_000]);
    assert.deepEqual(await attention(), []);
    assert.equal((await operate('money-return', 'dismiss', row?.id ?? '', '--reason', 'late')).code, 1);
  });

  it('needs a person after an hour without an answer, who can dismiss it', async () => {
    answer = async () => {
      throw new CardNetworkUnavailable('no answer');
    };
    await block();
    await until('it was asked', () => asked.length > 0);
    await asOwner(
      stack,
      "UPDATE money_return SET created_at = now() - interval '61 minutes' WHERE card_id = $1",
      [cardId],
    );
    const operate = operateIn(environmentOf(stack.config));
    const listed = (await operate('money-return', 'list')).json;
    assert.equal(listed[0].card_id, cardId);
    const items = (await operate('attention', 'list')).json;
    assert.equal(items.filter(({ kind }: { kind: string }) => kind === 'money_return').length, 1);
    const { json } = await operate('money-return', 'dismiss', listed[0].id, '--reason', 'by hand');
    assert.equal(json.status, 'dismissed');
  });

  it('is compared with the releases by the check of the ledger', async () => {
    await block();
    await allAre('succeeded');
    const [row] = await returns();
    const check = async () => (await checkBooks(stack.orm.em.fork())).map(({ message }) => message);
    assert.deepEqual(await check(), []);
    await asOwner(stack, 'UPDATE money_return SET amount_cents = 999 WHERE id = $1', [row?.id]);
    assert.deepEqual(await check(), ['its block_release of 1000 has a return of 999 by the card network']);
    await asOwner(stack, 'UPDATE money_return SET amount_cents = 1000 WHERE id = $1', [row?.id]);

    const refund = { type: 'refund', amountCents: 250 };
    const body = networkTransaction(await networkIdOf(stack, cardId), refund);
    assert.equal((await sendAsNetwork(stack, '/network/transactions', JSON.stringify(body))).status, 200);
    const [late] = (await returns()).filter(({ amount_cents }) => amount_cents === '250');
    await asOwner(stack, 'UPDATE money_return SET amount_cents = 251 WHERE id = $1', [late?.id]);
    assert.deepEqual(await check(), ['its late_refund of 250 has a return of 251 by the card network']);
    await asOwner(stack, 'UPDATE money_return SET amount_cents = 250 WHERE id = $1', [late?.id]);
  });

  describe('while the worker is killed', () => {
    let folder: string;
    before(() => {
      folder = scratchFolder();
    });
    after(() => rmSync(folder, { recursive: true, force: true }));

    for (const [text, when, isReleased] of [
      ['update "card" set "status"', 'before commit', false],
      ['update "money_return" set "status"', 'before', true],
      ['update "money_return" set "status"', 'after', true],
    ] as const) {
      it(`is released and returned once (${when} ${text})`, async () => {
        await stack.stopWorker();
        const place: DeadlyStatement = {
          text,
          when,
          armedFile: join(folder, `armed-${cardId}`),
          markerFile: join(folder, `died-${cardId}`),
        };
        writeFileSync(place.armedFile, '');
        const worker = await startProcess(stack.config, folder, 'worker/main.ts', {
          execArgv: ['--import', './test/support/crash/die-at-statement.ts'],
          env: { DIE_AT_STATEMENT: JSON.stringify(place), WORKFLOW_BUNDLE: await bundleFile(folder) },
        });
        const blocking = partner.call('POST', `/cards/${cardId}/block`, live);
        await until('the worker is killed', () => existsSync(place.markerFile));
        assert.equal(await worker.exited, 'signal SIGKILL', worker.lastLines().join('\n'));
        await kill(worker);
        assert.equal((await returns()).length, isReleased ? 1 : 0);
        await makeDue();
        await stack.startWorker({ around });
        assert.equal((await blocking).status, 200);
        await makeDue();
        await allAre('succeeded');
        assert.deepEqual(
          (await returns()).map(({ amount_cents }) => Number(amount_cents)),
          [1_000],
        );
      });
    }
  });
});
